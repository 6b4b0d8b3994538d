package document

import (
	"gopkg.in/yaml.v3"
)

// keySet finds out which keys a mapping has already: by looking for small
// mappings, which nearly all are, and by an index for large ones.
type keySet struct {
	entries *[]Entry
	index   map[string]int
}

const indexedKeys = 12

func (s *keySet) find(key string) (Entry, bool) {
	entries := *s.entries
	if len(entries) < indexedKeys {
		for _, e := range entries {
			if e.Key == key {
				return e, true
			}
		}
		return Entry{}, false
	}
	if s.index == nil {
		s.index = make(map[string]int, 4*indexedKeys)
	}
	for i := len(s.index); i < len(entries); i++ {
		s.index[entries[i].Key] = i
	}
	i, have := s.index[key]

	return entries[i], have
}

func (s *keySet) add(e Entry) { *s.entries = append(*s.entries, e) }

func (c *converter) mapping(v *Value, n *yaml.Node, depth int) {
	v.Kind = Map
	if n.Tag != "!!map" {
		c.badTag(n)
	}
	v.Entries = make([]Entry, 0, len(n.Content)/2)
	keys := keySet{entries: &v.Entries}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		key, ok := c.key(n.Content[i])
		if !ok {
			continue
		}
		e := Entry{Key: key, Pos: c.pos(n.Content[i]), Value: c.value(n.Content[i+1], depth+1)}
		if first, twice := keys.find(key); twice {
			c.problems.Add(e.Pos, "keep one of them", "the key `%s` is there twice, first at %s", key, first.Pos)
			continue
		}
		keys.add(e)
	}
	for _, m := range merges {
		c.merge(&keys, m, depth)
	}
}

// merge adds what a `<<` brings and the mapping does not have itself. Of
// several mappings the earlier wins.
func (c *converter) merge(keys *keySet, n *yaml.Node, depth int) {
	v := c.value(n, depth)
	sources := []Value{v}
	if v.Kind == List {
		sources = v.Items
	}
	for _, source := range sources {
		if source.Kind != Map {
			if !c.stopped {
				c.problems.Add(c.pos(n), "write `<<: *anchor`", "`<<` takes a mapping or a list of mappings, not %s", source.Kind)
			}
			continue
		}
		for _, e := range source.Entries {
			if _, have := keys.find(e.Key); !have {
				keys.add(e)
			}
		}
	}
}

func (c *converter) key(n *yaml.Node) (string, bool) {
	at := c.pos(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	var v Value
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		c.problems.Add(at, "an expression that begins with a brace must be quoted: \"{{ … }}\"", "a key must be text, not a mapping")
	case n.Kind != yaml.ScalarNode:
		c.problems.Add(at, "", "a key must be text, not %s", map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}[n.Kind])
	case n.Tag == "!!null":
		c.problems.Add(at, "write the key before the colon, in quotes if it is `null` or `~`", "a key must not be empty")
	default:
		v.Pos = at
		c.scalar(&v, n)
		return v.Text, true
	}

	return "", false
}
