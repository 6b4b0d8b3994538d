// Package engine runs the resources of a manifest: it orders them, looks at
// all of them at once, changes what differs, verifies it and says what
// happened. It knows the contract of types and no type.
package engine

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// EdgeKind is why one resource comes before another.
type EdgeKind string

// The kinds of edges. Require orders and gates, Subscribe orders and
// refreshes, Automatic only orders.
const (
	Require   EdgeKind = "require"
	Subscribe EdgeKind = "subscribe"
	Automatic EdgeKind = "automatic"
)

// Edge says that From runs before To, and why.
type Edge struct {
	From, To model.Ref
	Kind     EdgeKind
	// Reason is the relation behind an automatic edge, for example path:/etc/app.
	Reason string
}

// Graph is the resources of a manifest in the order in which they run. It is
// not changed by a run, so it can be run again.
type Graph struct {
	// nodes are in run order; a node's position in it is its index in a run.
	nodes []*node
	byRef map[model.Ref]*node
	edges []Edge
}

// node is one resource and what it is tied to.
type node struct {
	res         *resource.Resource
	ref         model.Ref
	at          int // place in run order
	declared    int // place in the document
	requires    []*node
	subscribes  []*node
	subscribers []*node
	// earlier are references to resources of earlier commands of the session.
	earlierRequires, earlierSubscribes []model.Ref
	before                             []*node // must run first, whatever the reason
	after                              []*node
	provides                           []string
}

// Known says that a reference which is not in the graph is one of an earlier
// command of the session. Nil knows none.
type Known func(model.Ref) bool

// Build makes the graph of resources, given in the order of their declaration.
// A reference to nothing, one name twice and a cycle are errors
// (model.Problems); they name every place concerned.
func Build(resources []*resource.Resource, known Known) (*Graph, error) {
	g := &Graph{byRef: make(map[model.Ref]*node, len(resources))}
	var problems model.Problems
	for _, r := range resources {
		problems = append(problems, g.add(r)...)
	}
	problems = append(problems, g.connect(known)...)
	if len(problems) > 0 {
		return nil, problems
	}
	if err := g.sort(); err != nil {
		return nil, err
	}
	g.relate()
	if err := g.sort(); err != nil {
		return nil, err
	}

	return g, nil
}

// Len is the number of resources.
func (g *Graph) Len() int { return len(g.nodes) }

// Resources gives the resources in the order in which they run.
func (g *Graph) Resources() []*resource.Resource {
	out := make([]*resource.Resource, len(g.nodes))
	for i, n := range g.nodes {
		out[i] = n.res
	}

	return out
}

// Edges gives the edges in the order of declaration, automatic ones last.
func (g *Graph) Edges() []Edge { return g.edges }

// add registers a resource under its name and alias. A resource that is
// identical to one of another document is that one.
func (g *Graph) add(r *resource.Resource) model.Problems {
	n := &node{res: r, ref: r.Ref(), declared: len(g.nodes)}
	if first, taken := g.byRef[n.ref]; taken {
		if identical(first.res, r) {
			return nil
		}
		return twice(n.ref, first.res.Pos, r.Pos)
	}
	g.byRef[n.ref] = n
	g.nodes = append(g.nodes, n)
	alias := r.Meta().Alias
	if alias == "" || alias == n.ref.Name {
		return nil
	}
	byAlias := model.Ref{Type: n.ref.Type, Name: alias}
	if first, taken := g.byRef[byAlias]; taken {
		return twice(byAlias, first.res.Pos, r.Pos)
	}
	g.byRef[byAlias] = n

	return nil
}

func twice(ref model.Ref, first, second model.Position) model.Problems {
	var p model.Problems
	p.Add(second, "keep one of them, or give one another name", "%s is declared twice, first at %s", ref, first)

	return p
}

// identical says that two resources of different documents ask for the same.
func identical(a, b *resource.Resource) bool {
	return a.Pos.File != b.Pos.File && a.Late == nil && b.Late == nil && a.Excluded == b.Excluded &&
		a.Type.Name == b.Type.Name && reflect.DeepEqual(a.Spec, b.Spec)
}

// connect makes the edges that the resources ask for.
func (g *Graph) connect(known Known) model.Problems {
	var problems model.Problems
	for _, n := range g.nodes {
		meta := n.res.Meta()
		for _, ref := range meta.Require {
			if dep, ok := g.resolve(n, ref, "require", known, &problems); ok {
				n.requires = append(n.requires, dep)
				g.edge(dep, n, Require, "")
			} else {
				n.earlierRequires = append(n.earlierRequires, ref)
			}
		}
		for _, ref := range meta.Subscribe {
			if dep, ok := g.resolve(n, ref, "subscribe", known, &problems); ok {
				n.subscribes = append(n.subscribes, dep)
				dep.subscribers = append(dep.subscribers, n)
				g.edge(dep, n, Subscribe, "")
			} else {
				n.earlierSubscribes = append(n.earlierSubscribes, ref)
			}
		}
	}

	return problems
}

// resolve finds the node of a reference; false means that it is not in the
// graph, which is a problem unless the session knows it.
func (g *Graph) resolve(n *node, ref model.Ref, property string, known Known, problems *model.Problems) (*node, bool) {
	dep, found := g.byRef[ref]
	switch {
	case found && dep == n:
		problems.Add(n.res.Pos, "remove the reference", "%s is in its own %s", n.ref, property)
		return nil, false
	case found:
		return dep, true
	case known != nil && known(ref):
		return nil, false
	}
	hint := ""
	if near := resource.Nearest(ref.String(), g.names()); near != "" {
		hint = "did you mean " + near + "?"
	}
	problems.Add(n.res.Pos, hint, "%s: %s names %s, which is not declared", n.ref, property, ref)

	return nil, false
}

func (g *Graph) names() []string {
	names := make([]string, 0, len(g.byRef))
	for _, n := range g.nodes {
		names = append(names, n.ref.String())
		if alias := n.res.Meta().Alias; alias != "" {
			names = append(names, n.ref.Type+"#"+alias)
		}
	}

	return names
}

func (g *Graph) edge(from, to *node, kind EdgeKind, reason string) {
	g.edges = append(g.edges, Edge{From: from.ref, To: to.ref, Kind: kind, Reason: reason})
	to.before = append(to.before, from)
	from.after = append(from.after, to)
}

// cycleError says how a cycle goes round, with the place of each resource.
func cycleError(cycle []*node) model.Problems {
	steps := make([]string, 0, len(cycle)+1)
	for _, n := range append(cycle, cycle[0]) {
		steps = append(steps, fmt.Sprintf("%s (%s)", n.ref, n.res.Pos))
	}
	var p model.Problems
	p.Add(cycle[0].res.Pos, "remove one of these references", "the resources wait for each other: %s", strings.Join(steps, " -> "))

	return p
}
