// Package engine runs the resources of a manifest: it orders them, looks at
// all of them at once, changes what differs, verifies it and says what
// happened. It knows the contract of types and no type.
package engine

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Edge says that From runs before To, and why.
type Edge struct {
	From, To model.Ref
	// Reason is the property that asks for it, require or subscribe; outputs or
	// readFile for what an expression takes; or the relation behind an automatic
	// edge, for example path:/etc/app.
	Reason string
	// Automatic says that nobody asked for it: it only orders.
	Automatic bool
}

// Graph is the resources of a manifest in the order in which they run. It is
// not changed by a run, so it can be run again.
type Graph struct {
	// nodes are in run order; a node's position in it is its index in a run.
	nodes []*node
	byRef map[model.Ref]*node
	// provided, along and removed are who provides something, makes it on the way or
	// takes it away, by what that is.
	provided, along, removed map[string][]*node
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
	// earlier are references to resources of earlier commands of the session, or of
	// manifests that are left out or not read yet.
	earlierRequires, earlierSubscribes []model.Ref
	before                             []*node // must run first, whatever the reason
	waits                              []Edge  // those from before, with their reasons
	after                              []*node
	relations                          resource.Relations
	// children are the resources of the manifest that this one includes, within
	// are those that include this one, and owner the one of them by whose manifest
	// it is in the graph.
	children, within []*node
	owner            *node
	// ends says that the manifest it includes ends at its first failure.
	ends bool
}

// Known says that a reference which is not in the graph is one of an earlier
// command of the session. Nil knows none.
type Known func(model.Ref) bool

// Build makes the graph of resources, given in the order of their declaration.
// Its error is that of resource.CheckLinks (model.Problems): a reference to
// nothing, one name twice, a cycle.
//
// Where a manifest that one of them includes cannot be read before the run,
// what is not known may be in it, and is no error. What is in one that is left
// out may be referred to.
func Build(resources []*resource.Resource, known Known) (*Graph, error) {
	g := &Graph{byRef: make(map[model.Ref]*node, len(resources))}
	links := make([]resource.Links, 0, len(resources))
	for _, r := range resources {
		if g.add(r) {
			links = append(links, resource.LinksOf(r))
		}
	}
	open, earlier := slices.ContainsFunc(resources, isOpenEnded), known
	known = func(ref model.Ref) bool { return open || g.LeftOut(ref) || (earlier != nil && earlier(ref)) }
	if problems := resource.CheckLinks(links, known); len(problems) > 0 {
		return nil, problems
	}
	g.connect()
	g.include()
	g.sort()
	g.relate()
	g.sort()

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

// Step is a resource at its place in a run, with what it waits for.
type Step struct {
	Resource *resource.Resource
	// Waits are the edges that lead to it: those that its manifest asks for, in
	// its order, then the automatic ones.
	Waits []Edge
	// Elsewhere are what it waits for that is not in the graph: of earlier commands
	// of the session, or in manifests that are left out or not read yet. From is as
	// it was written.
	Elsewhere []Edge
}

// Steps gives the resources in the order in which they run, with what each
// waits for. Where nothing is waited for, the order is that of declaration; a
// run leaves it only for a resource that misses what another one makes on its way.
func (g *Graph) Steps() []Step {
	out := make([]Step, len(g.nodes))
	for i, n := range g.nodes {
		out[i].Resource, out[i].Waits = n.res, n.waits
		for _, ref := range n.earlierRequires {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.ref, Reason: takes(n.res, ref)})
		}
		for _, ref := range n.earlierSubscribes {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.ref, Reason: "subscribe"})
		}
	}

	return out
}

// add registers a resource under its name and alias, and says that it did: one
// that is identical to one of another document is that one.
func (g *Graph) add(r *resource.Resource) bool {
	n := &node{res: r, ref: r.Ref(), declared: len(g.nodes)}
	if first, taken := g.byRef[n.ref]; taken && first.res.IsSame(r) {
		return false
	}
	g.nodes = append(g.nodes, n)
	g.byRef[n.ref] = n
	if alias := r.Meta().Alias; alias != "" {
		g.byRef[model.Ref{Type: n.ref.Type, Name: alias}] = n
	}

	return true
}

// connect makes the edges that the resources ask for. What is not in the graph
// is one of an earlier command of the session.
func (g *Graph) connect() {
	for _, n := range g.nodes {
		meta := n.res.Meta()
		for _, ref := range meta.Require {
			if dep, ok := g.byRef[ref]; ok {
				n.requires = append(n.requires, dep)
				g.edge(dep, n, Edge{Reason: takes(n.res, ref)})
			} else {
				n.earlierRequires = append(n.earlierRequires, ref)
			}
		}
		for _, ref := range meta.Subscribe {
			if dep, ok := g.byRef[ref]; ok {
				n.subscribes = append(n.subscribes, dep)
				dep.subscribers = append(dep.subscribers, n)
				g.edge(dep, n, Edge{Reason: "subscribe"})
			} else {
				n.earlierSubscribes = append(n.earlierSubscribes, ref)
			}
		}
	}
}

// takes says why a resource requires another one: its manifest says so, or one
// of its expressions takes something of it.
func takes(r *resource.Resource, ref model.Ref) string {
	for _, need := range r.Taken {
		if need.Ref == ref {
			return need.Property
		}
	}

	return "require"
}

func (g *Graph) edge(from, to *node, e Edge) {
	e.From, e.To = from.ref, to.ref
	to.waits = append(to.waits, e)
	to.before = append(to.before, from)
	from.after = append(from.after, to)
}
