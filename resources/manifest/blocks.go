package manifest

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// declared is a resource as the document declares it: its name is the first
// property, and the defaults of its block are among them.
type declared struct {
	typ        *resource.Type
	pos        model.Position
	properties resource.Value
}

const (
	keyDefaults = "defaults"
	keyName     = "name"
	keyControl  = "control"
	keyAlias    = "alias"
)

// blocks takes the list of resources apart.
type blocks struct {
	types    resource.Types
	out      []declared
	problems model.Problems
}

func (b *blocks) read(items []resource.Value) {
	for _, item := range items {
		if item.Kind != resource.Map {
			b.problems.Add(item.Pos, "write `- file:` with its resources below", "an entry of `resources` must be a mapping, not %s", item.Kind)
			continue
		}
		if len(item.Entries) == 0 {
			b.problems.Add(item.Pos, "write `- file:` with its resources below", "an entry of `resources` is empty")
		}
		for _, e := range item.Entries {
			b.block(e)
		}
	}
}

func (b *blocks) block(e resource.Entry) {
	t, ok := b.types.Get(e.Key)
	if !ok {
		b.problems = append(b.problems, unknownType(b.types, e.Key, e.Pos))
		return
	}
	switch e.Value.Kind {
	case resource.List:
		b.list(t, e.Value)
	case resource.Map:
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

// single is the form with a name property.
func (b *blocks) single(t *resource.Type, e resource.Entry) {
	if _, named := e.Value.Get(keyName); !named && len(e.Value.Entries) > 0 && e.Value.Entries[0].Value.Kind == resource.Map && !isProperty(t, e.Value.Entries[0].Key) {
		first := e.Value.Entries[0]
		b.problems.Add(first.Pos, "write it as an item of a list: `- "+first.Key+":`", "`%s` has neither a list of resources nor a name", t.Name)
		return
	}
	entries := e.Value.Entries
	if i := slices.IndexFunc(entries, func(e resource.Entry) bool { return e.Key == keyName }); i > 0 {
		entries = slices.Concat(entries[i:i+1], entries[:i], entries[i+1:])
	}
	b.out = append(b.out, declared{typ: t, pos: e.Pos, properties: resource.Value{Kind: resource.Map, Pos: e.Value.Pos, Entries: entries}})
}

// list is the form of items name: properties.
func (b *blocks) list(t *resource.Type, v resource.Value) {
	var defaults []resource.Entry
	b.out = slices.Grow(b.out, len(v.Items))
	for _, item := range v.Items {
		switch {
		case item.Kind != resource.Map && item.IsScalar():
			b.problems.Add(item.Pos, "write `- "+item.Text+":` with its properties below, if it has any", "an item of `%s` must be a mapping of a name to its properties, not %s", t.Name, item.Kind)
			continue
		case item.Kind != resource.Map:
			b.problems.Add(item.Pos, "", "an item of `%s` must be a mapping of a name to its properties, not %s", t.Name, item.Kind)
			continue
		case len(item.Entries) != 1:
			b.notOne(t, item)
			continue
		}
		e := item.Entries[0]
		if e.Value.Kind != resource.Map && e.Value.Kind != resource.Null {
			b.problems.Add(e.Value.Pos, "write its properties below the name, as key: value", "`%s` must be a mapping of properties, not %s", e.Key, e.Value.Kind)
			continue
		}
		if e.Key == keyDefaults {
			defaults = b.mergeDefaults(t, defaults, e.Value.Entries)
			continue
		}
		b.add(t, e, defaults)
	}
}

func (b *blocks) notOne(t *resource.Type, item resource.Value) {
	hint := "write `- <name>:` with its properties below"
	switch name, named := item.Get(keyName); {
	case named:
		hint = "write `- " + name.Text + ":` with its other properties below and indented"
	case len(item.Entries) > 1:
		hint = "indent the properties further than the name"
	}
	b.problems.Add(item.Pos, hint, "an item of `%s` must hold one name, not %d keys", t.Name, len(item.Entries))
}

// add declares a resource of the list form.
func (b *blocks) add(t *resource.Type, e resource.Entry, defaults []resource.Entry) {
	entries := make([]resource.Entry, 0, 1+len(e.Value.Entries)+len(defaults))
	entries = append(entries, resource.Entry{Key: keyName, Pos: e.Pos, Value: resource.Value{Kind: resource.String, Text: e.Key, Pos: e.Pos}})
	entries = append(entries, e.Value.Entries...)
	for _, d := range defaults {
		if !slices.ContainsFunc(e.Value.Entries, func(own resource.Entry) bool { return sameProperty(t, own.Key, d.Key) }) {
			entries = append(entries, d)
		}
	}
	b.out = append(b.out, declared{typ: t, pos: e.Pos, properties: resource.Value{Kind: resource.Map, Pos: e.Pos, Entries: entries}})
}

// mergeDefaults gives the defaults for the rest of a block: a later entry wins.
func (b *blocks) mergeDefaults(t *resource.Type, before, more []resource.Entry) []resource.Entry {
	out := slices.Clone(before)
	for _, e := range more {
		switch {
		case e.Key == keyName, e.Key == keyAlias:
			b.problems.Add(e.Pos, "", "`%s` cannot be a default: it belongs to one resource", e.Key)
			continue
		case !isProperty(t, e.Key):
			b.problems = append(b.problems, t.UnknownProperty(e.Key, e.Pos))
			continue
		}
		out = slices.DeleteFunc(out, func(old resource.Entry) bool { return sameProperty(t, old.Key, e.Key) })
		out = append(out, e)
	}

	return out
}

func isProperty(t *resource.Type, key string) bool {
	_, ok := t.Property(key)

	return ok
}

// sameProperty says that two keys are of one property, which may have aliases.
func sameProperty(t *resource.Type, a, b string) bool {
	first, known := t.Property(a)
	second, also := t.Property(b)

	return a == b || known && also && first.Key == second.Key
}
