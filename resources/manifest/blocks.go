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
type declaration struct {
	Type       *resource.Type
	pos        model.Position
	properties document.Value
}

// The keys of a resource that belong to no type.
const (
	keyDefaults = "defaults"
	keyName     = "name"
	keyControl  = "control"
	keyAlias    = "alias"
)

// blocks reads the list of resources.
type blocks struct {
	types    resource.Types
	declared []declaration
	problems model.Problems
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
		for _, e := range item.Entries {
			if t, ok := b.types.Get(e.Key); ok {
				b.block(t, e)
			} else {
				b.problems.AddMade(func() model.Problem { return unknownType(b.types, e.Key, e.Pos) })
			}
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
	entries = append(entries, addMissing(t, e.Value.Entries, defaults)...)
	b.declared = append(b.declared, declaration{Type: t, pos: e.Pos, properties: document.Value{Kind: document.Map, Pos: e.Pos, Entries: entries}})
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
		case e.Key == keyName, e.Key == keyAlias:
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
