package yamlread

import (
	"slices"

	"gopkg.in/yaml.v3"
)

func (c *converter) mapping(n *yaml.Node, depth int) {
	i := c.add(n)
	if n.Tag != "!!map" {
		c.badTag(n)
	}
	c.entries(n, depth, &Keys{})
	c.nodes[i].Kind, c.nodes[i].Size = Map, uint32(len(c.nodes)-i)
}

// entries appends the keys and values of a mapping, except those in keys. Without keys it appends
// all, and only records what is merged.
func (c *converter) entries(n *yaml.Node, depth int, keys *Keys) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			merges = append(merges, n.Content[i+1])
			continue
		}
		start := len(c.nodes)
		if !c.key(n.Content[i]) {
			continue
		}
		if keys == nil {
			c.value(n.Content[i+1], depth+1)
			continue
		}
		key, at := c.TextOf(c.nodes[start]), c.nodes[start].At
		c.value(n.Content[i+1], depth+1)
		if first, twice := keys.Find(key); twice {
			AddDuplicate(&c.problems, c.pos(n.Content[i]), key, c.Position(first))
			c.nodes = c.nodes[:start]
			continue
		}
		keys.Add(key, at)
	}
	if keys == nil {
		c.merges = merges
		return
	}
	for _, m := range merges {
		c.merge(keys, m, depth)
	}
}

// merge adds the entries of `<<` that the mapping does not set. Of several mappings the first wins.
func (c *converter) merge(keys *Keys, n *yaml.Node, depth int) {
	start := len(c.nodes)
	c.value(n, depth)
	brought := slices.Clone(c.nodes[start:])
	c.nodes = c.nodes[:start]
	sources := brought
	if brought[0].Kind == List {
		sources = brought[1:]
	}
	for len(sources) > 0 {
		source := sources[:sources[0].Span()]
		sources = sources[len(source):]
		if source[0].Kind != Map {
			if !c.stopped {
				c.problems.Add(c.pos(n), "write `<<: *anchor`", "`<<` takes a mapping or a list of mappings, not %s", source[0].Kind)
			}
			continue
		}
		for entries := source[1:]; len(entries) > 0; {
			entry := entries[:1+entries[1].Span()]
			entries = entries[len(entry):]
			i := len(c.nodes)
			c.nodes = append(c.nodes, entry...)
			if key := c.TextOf(c.nodes[i]); keys.Has(key) {
				c.nodes = c.nodes[:i]
			} else {
				keys.Add(key, entry[0].At)
			}
		}
	}
}

// key appends a key if it is valid.
func (c *converter) key(n *yaml.Node) bool {
	at, offset := c.pos(n), c.offset(n)
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		c.problems.Add(at, "an expression that begins with a brace must be quoted: \"{{ … }}\"", "a key must be text, not a mapping")
	case n.Kind != yaml.ScalarNode:
		c.problems.Add(at, "", "a key must be text, not %s", map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}[n.Kind])
	case n.Tag == "!!null":
		c.problems.Add(at, "write the key before the colon, in quotes if it is `null` or `~`", "a key must not be empty")
	default:
		c.nodes = append(c.nodes, Node{At: offset})
		c.scalar(n, len(c.nodes)-1)
		return true
	}

	return false
}
