package yamlread

import (
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// assembly makes a tree of the pieces of a document.
type assembly struct {
	out      *Tree
	open     []container
	problems model.Problems
	values   int
	stopped  bool
}

// container is a list or mapping that was begun.
type container struct {
	at   int
	kind Kind
	// depth is how deep it is nested.
	depth int
	keys  Keys
	// merges are what `<<` brings; they come last.
	merges []merging
	// twice is the node of a key that is there twice and whose value follows, 0 for none.
	twice int
}

type merging struct {
	*converter
	node *yaml.Node
}

// do does a step; read returns the piece of it.
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

// stop ends the reading where a limit was hit.
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

// graft appends the nodes of a piece, but for keys that are there twice.
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

// isNew reports whether a mapping does not have a key yet, and notes it.
func (a *assembly) isNew(m *container, key Node, c *converter) bool {
	text := c.TextOf(key)
	first, twice := m.keys.Find(text)
	if twice {
		AddTwice(&a.problems, a.out.Position(key.At), text, a.out.Position(first))
		return false
	}
	m.keys.Add(text, key.At)

	return true
}

// key appends a key whose value follows.
func (a *assembly) key(c *converter) {
	last := &a.open[len(a.open)-1]
	fresh := a.isNew(last, c.nodes[0], c)
	if !fresh {
		last.twice = a.out.Len()
	}
	a.graft(&container{kind: List}, &converter{Texts: c.Texts, nodes: c.nodes[:1]})
}

// close ends the list or mapping that was begun last.
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
