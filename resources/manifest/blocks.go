package manifest

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// declaration is a resource of a document. Its name is the first property. The defaults of its
// block are included.
// A group has declarations instead of a type, and its properties are its control.
type declaration struct {
	Type       *resource.Type
	pos        model.Position
	properties document.Value
	// each is the list or mapping of a loop; nil for no loop.
	each  *document.Value
	group []declaration
}

// The keys of a resource that belong to no type.
const (
	keyDefaults = "defaults"
	keyName     = "name"
	keyControl  = "control"
	keyAlias    = "alias"
	keyEach     = "each"
	// keyResources makes an entry of resources a group.
	keyResources = "resources"
)

// blocks reads the list of resources.
type blocks struct {
	types    resource.Types
	declared []declaration
	problems model.Problems
	// depth is the number of groups around the list.
	depth int
}

// Read reads the entries of resources.
func (b *blocks) Read(items []document.Value) {
	for _, item := range items {
		const hint = "write `- file:` with its resources below"
		switch {
		case item.Kind != document.Map:
			b.problems.Add(item.Pos, hint, "an entry of `resources` must be a mapping, not %s", item.Kind)
		case len(item.Entries) == 0:
			b.problems.Add(item.Pos, hint, "an entry of `resources` is empty")
		}
		if list, is := item.Get(keyResources); is {
			b.group(item, list)
			continue
		}
		for _, e := range item.Entries {
			if t, ok := b.types.Get(e.Key); ok {
				b.block(t, e)
			} else {
				b.problems.AddMade(func() model.Problem { return unknownType(b.types, e.Key, e.Pos) })
			}
		}
	}
}

// group reads an entry that contains resources, with their common each and control.
func (b *blocks) group(item, list document.Value) {
	d := declaration{pos: item.Pos, properties: document.Value{Kind: document.Map, Pos: item.Pos}}
	for _, e := range item.Entries {
		switch e.Key {
		case keyResources:
		case keyEach:
			d.each = &e.Value
		case keyControl:
			d.properties.Entries = append(d.properties.Entries, e)
			b.condition(e.Value)
		default:
			b.problems.Add(e.Pos, "a group has `each`, `control` and `resources`", "unknown key `%s` of a group", e.Key)
		}
	}
	switch {
	case list.Kind != document.List && list.Kind != document.Null:
		b.problems.Add(list.Pos, "write `- file:` with its resources below", "`%s` must be a list, not %s", keyResources, list.Kind)
		return
	case d.each == nil && len(d.properties.Entries) == 0:
		b.problems.Add(item.Pos, "add `each` or `control`, or move its resources out of it", "a group has neither `each` nor `control`")
	case b.depth >= maxGroups:
		b.problems.Add(item.Pos, "", "groups are nested more than %d levels deep", maxGroups)
		return
	}
	inner := blocks{types: b.types, depth: b.depth + 1}
	inner.Read(list.Items)
	b.problems.Append(inner.problems...)
	d.group = append([]declaration{}, inner.declared...)
	b.declared = append(b.declared, d)
}

// condition checks the form of the control of a group.
func (b *blocks) condition(control document.Value) {
	if control.Kind != document.Map && control.Kind != document.Null {
		b.problems.Add(control.Pos, "write `control: {if: …}`", "`control` must be a mapping, not %s", control.Kind)
	}
	for _, e := range control.Entries {
		switch {
		case e.Key != "if" && e.Key != "unless":
			b.problems.AddMade(func() model.Problem {
				return document.Unknown(e.Pos, "key", e.Key, " in `control`", []string{"if", "unless"})
			})
		case !e.Value.IsScalar() && e.Value.Kind != document.Null:
			b.problems.Add(e.Value.Pos, "", "`control.%s` must be an expression, not %s", e.Key, e.Value.Kind)
		}
	}
}

func (b *blocks) block(t *resource.Type, e document.Entry) {
	switch e.Value.Kind {
	case document.List:
		b.list(t, e.Value.Items)
	case document.Map:
		b.single(t, e)
	default:
		b.problems.Add(e.Value.Pos, "write `- <name>:` with its properties below", "`%s` must be a list of resources, not %s", e.Key, e.Value.Kind)
	}
}

func unknownType(types resource.Types, name string, pos model.Position) model.Problem {
	out := document.Unknown(pos, "resource type", name, "", types.Names())
	switch name {
	case keyEach, keyControl:
		out.Hint = "put it into an item, or write a group: `" + name + "` beside `resources`"
	case "when", "loop":
		out.Hint = "write a group: `control` or `each` beside `resources`"
	}
	if out.Cause = model.ErrUnknownType; out.Hint == "" {
		out.Hint = "one of " + strings.Join(types.Names(), ", ")
	}

	return out
}

// single reads the form with a name property.
func (b *blocks) single(t *resource.Type, e document.Entry) {
	if _, named := e.Value.Get(keyName); !named && len(e.Value.Entries) > 0 && e.Value.Entries[0].Value.Kind == document.Map && !isProperty(t, e.Value.Entries[0].Key) {
		first := e.Value.Entries[0]
		b.problems.Add(first.Pos, "write it as an item of a list: `- "+first.Key+":`", "`%s` has neither a list of resources nor a name", t.Name)
		return
	}
	if i := slices.IndexFunc(e.Value.Entries, func(e document.Entry) bool { return e.Key == keyEach }); i >= 0 {
		b.problems.Add(e.Value.Entries[i].Pos, "write `- "+t.Name+":` with an item `- <name>:` below", "`each` belongs to an item of a list or to a group")
		return
	}
	entries := e.Value.Entries
	if i := slices.IndexFunc(entries, func(e document.Entry) bool { return e.Key == keyName }); i > 0 {
		entries = slices.Concat(entries[i:i+1], entries[:i], entries[i+1:])
	}
	b.declared = append(b.declared, declaration{Type: t, pos: e.Pos, properties: document.Value{Kind: document.Map, Pos: e.Value.Pos, Entries: entries}})
}

// list reads the form of items name: properties. Defaults apply to the whole block. If several
// defaults set one property, the last one before a resource wins, else the last one after it.
func (b *blocks) list(t *resource.Type, items []document.Value) {
	var defaults []document.Entry
	type named struct {
		document.Entry
		before []document.Entry
	}
	var resources []named
	for _, item := range items {
		switch {
		case item.Kind != document.Map && item.IsScalar():
			b.problems.Add(item.Pos, "write `- "+item.Text+":` with its properties below, if it has any", "an item of `%s` must be a mapping of a name to its properties, not %s", t.Name, item.Kind)
			continue
		case item.Kind != document.Map:
			b.problems.Add(item.Pos, "", "an item of `%s` must be a mapping of a name to its properties, not %s", t.Name, item.Kind)
			continue
		case len(item.Entries) != 1:
			b.notOne(t, item)
			continue
		}
		e := item.Entries[0]
		if e.Value.Kind != document.Map && e.Value.Kind != document.Null {
			b.problems.Add(e.Value.Pos, "write its properties below the name, as key: value", "`%s` must be a mapping of properties, not %s", e.Key, e.Value.Kind)
			continue
		}
		if e.Key == keyDefaults {
			defaults = b.mergeDefaults(t, defaults, e.Value.Entries)
			continue
		}
		resources = append(resources, named{e, defaults})
	}
	for _, r := range resources {
		b.add(t, r.Entry, addMissing(t, r.before, defaults))
	}
}

func (b *blocks) notOne(t *resource.Type, item document.Value) {
	hint := "write `- <name>:` with its properties below"
	name, named := item.Get(keyName)
	if i := slices.IndexFunc(item.Entries, func(e document.Entry) bool {
		return resource.IsNameElsewhere(e.Key) && e.Value.IsScalar() && !isProperty(t, e.Key)
	}); i >= 0 && !named {
		name, named = item.Entries[i].Value, true
	}
	switch {
	case named:
		hint = "write `- " + name.Text + ":` with its other properties below and indented"
	case len(item.Entries) > 1:
		hint = "indent the properties further than the name"
	}
	b.problems.Add(item.Pos, hint, "an item of `%s` must hold one name, not %d keys", t.Name, len(item.Entries))
}

func (b *blocks) add(t *resource.Type, e document.Entry, defaults []document.Entry) {
	entries := make([]document.Entry, 0, 1+len(e.Value.Entries)+len(defaults))
	entries = append(entries, document.Entry{Key: keyName, Pos: e.Pos, Value: document.Value{Kind: document.String, Text: e.Key, Pos: e.Pos}})
	own, each := e.Value.Entries, (*document.Value)(nil)
	if i := slices.IndexFunc(own, func(e document.Entry) bool { return e.Key == keyEach }); i >= 0 {
		each = &own[i].Value
		own = slices.Concat(own[:i], own[i+1:])
	}
	entries = append(entries, addMissing(t, own, defaults)...)
	b.declared = append(b.declared, declaration{Type: t, pos: e.Pos, each: each, properties: document.Value{Kind: document.Map, Pos: e.Pos, Entries: entries}})
}

func addMissing(t *resource.Type, properties, more []document.Entry) []document.Entry {
	out := slices.Clip(properties)
	for _, e := range more {
		if !slices.ContainsFunc(properties, func(own document.Entry) bool { return sameProperty(t, own.Key, e.Key) }) {
			out = append(out, e)
		}
	}

	return out
}

// mergeDefaults merges defaults. A later entry wins.
func (b *blocks) mergeDefaults(t *resource.Type, before, more []document.Entry) []document.Entry {
	out := slices.Clone(before)
	for _, e := range more {
		switch {
		case e.Key == keyName, e.Key == keyAlias, e.Key == keyEach:
			b.problems.Add(e.Pos, "", "`%s` cannot be a default: it belongs to one resource", e.Key)
			continue
		case !isProperty(t, e.Key):
			b.problems.AddMade(func() model.Problem { return t.UnknownProperty(e.Key, e.Pos) })
			continue
		}
		out = slices.DeleteFunc(out, func(old document.Entry) bool { return sameProperty(t, old.Key, e.Key) })
		out = append(out, e)
	}

	return out
}

func isProperty(t *resource.Type, key string) bool {
	_, ok := t.Property(key)

	return ok
}

// sameProperty reports whether two keys are names of one property.
func sameProperty(t *resource.Type, a, b string) bool {
	p, known := t.Property(a)

	return a == b || known && p.Is(b)
}
