package yamlread

import (
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// assembly builds a tree from the pieces of a document.
type assembly struct {
	out      *Tree
	open     []container
	problems model.Problems
	values   int
	stopped  bool
}

// container is an open list or mapping.
type container struct {
	at   int
	kind Kind
	// depth is the nesting depth.
	depth int
	keys  Keys
	// merges are the entries of `<<`. They are added last.
	merges []merging
	// twice is the node of a duplicate key before its value, or 0.
	twice int
}

type merging struct {
	*converter
	node *yaml.Node
}

// do performs a step. read returns the piece of the step.
func (a *assembly) do(s step, read func(step) (*converter, error)) error {
	switch s.kind {
	case openList, openMap:
		kind := List
		if s.kind == openMap {
			kind = Map
		}
		a.open = append(a.open, container{at: a.out.Add(Node{At: uint32(s.from), Kind: kind}), kind: kind, depth: len(a.open)})
		return nil
	case closeLast:
		a.close()
		return nil
	}
	c, err := read(s)
	if err != nil {
		return err
	}
	a.problems.Append(c.problems...)
	if a.values += c.values; c.stopped || a.values > MaxValues {
		a.stop(c)
		return nil
	}
	last := &a.open[len(a.open)-1]
	for _, m := range c.merges {
		last.merges = append(last.merges, merging{c, m})
	}
	if s.kind == readKey {
		a.key(c)
		return nil
	}
	a.graft(last, c)

	return nil
}

// stop ends the reading after a limit.
func (a *assembly) stop(c *converter) {
	a.stopped = true
	if !c.stopped {
		a.problems.Append(TooMany(a.out.Name))
	}
	for len(a.open) > 0 {
		a.out.Close(a.open[len(a.open)-1].at)
		a.open = a.open[:len(a.open)-1]
	}
}

// graft appends the nodes of a piece, except duplicate keys.
func (a *assembly) graft(last *container, c *converter) {
	base := len(a.out.Others)
	a.out.Others = append(a.out.Others, c.Others...)
	for nodes := c.nodes; len(nodes) > 0; {
		count := nodes[0].Span()
		take := true
		if last.kind == Map {
			count = 1 + nodes[1].Span()
			take = a.isNew(last, nodes[0], c)
		}
		for _, n := range nodes[:count] {
			if n.Form == InOthers {
				n.Size += uint32(base)
			}
			if take {
				a.out.Add(n)
			}
		}
		nodes = nodes[count:]
	}
}

// isNew adds a key to a mapping and reports whether it is new.
func (a *assembly) isNew(m *container, key Node, c *converter) bool {
	text := c.TextOf(key)
	first, twice := m.keys.Find(text)
	if twice {
		AddDuplicate(&a.problems, a.out.Position(key.At), text, a.out.Position(first))
		return false
	}
	m.keys.Add(text, key.At)

	return true
}

// key appends a key. Its value follows.
func (a *assembly) key(c *converter) {
	last := &a.open[len(a.open)-1]
	fresh := a.isNew(last, c.nodes[0], c)
	if !fresh {
		last.twice = a.out.Len()
	}
	a.graft(&container{kind: List}, &converter{Texts: c.Texts, nodes: c.nodes[:1]})
}

// close ends the last open list or mapping.
func (a *assembly) close() {
	last := &a.open[len(a.open)-1]
	for _, m := range last.merges {
		m.nodes, m.Others, m.problems = nil, nil, nil
		m.merge(&last.keys, m.node, last.depth)
		a.problems.Append(m.problems...)
		a.stopped = a.stopped || m.stopped
		a.graft(&container{kind: List}, m.converter)
	}
	a.out.Close(last.at)
	a.open = a.open[:len(a.open)-1]
	if len(a.open) == 0 {
		return
	}
	if parent := &a.open[len(a.open)-1]; parent.twice > 0 {
		a.out.Truncate(parent.twice)
		parent.twice = 0
	}
}
