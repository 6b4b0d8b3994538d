// Package graph orders the resources of a manifest. It is pure: it knows
// resources and what ties them, and neither the machine nor a run.
package graph

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Edge means that From runs before To.
type Edge struct {
	From, To model.Ref
	// Reason is the property that asks for it, require or subscribe; outputs or
	// readFile for what an expression takes; or the relation behind an automatic
	// edge, for example path:/etc/app.
	Reason string
	// Automatic marks an edge that nobody asked for. It only orders, and gates
	// where From provides a path.
	Automatic bool
}

// Graph is the resources of a manifest in run order. A run does not change it,
// so it can run again.
type Graph struct {
	nodes []*Node
	byRef map[model.Ref]*Node
	// Providers, ImplicitCreators and Removers are the nodes that provide, create on
	// their way or remove what relations name.
	Providers, ImplicitCreators, Removers map[string][]*Node

	partOf *Graph // that this one is a part of
	// open is that manifests are read during the run, or excluded unread.
	openEnded bool
}

// Node is a resource with its edges. Only this package changes one.
type Node struct {
	Resource *resource.Resource
	Ref      model.Ref
	// At is its place in run order.
	At int
	// Requires are what it does not run without: what its properties name, and what
	// provides a path that it needs. Subscribes is what its properties name,
	// Subscribers who names it.
	Requires, Subscribes, Subscribers []*Node
	// RequiresElsewhere and SubscribesElsewhere are references to resources that are
	// not in the graph: those of earlier commands of the session, or of manifests
	// that are excluded or not read yet.
	RequiresElsewhere, SubscribesElsewhere []model.Ref
	// Before are the nodes that must run first, whatever the reason.
	Before    []*Node
	Relations resource.Relations
	// Children are the resources of the manifest that it includes, Parents the nodes
	// that include it, and Owner the one of them that brought it into the graph.
	Children, Parents []*Node
	Owner             *Node
	// FailFast means that the manifest it includes ends at its first failure.
	FailFast bool
	// Follows means that it gets a turn only when something changes that it follows: a
	// subscriber in a Part.
	Follows bool

	declared int    // place in the document
	waits    []Edge // edges to it, with their reasons
	after    []*Node
}

// Known reports whether a reference that is not in the graph is one of an
// earlier command of the session. Nil knows none.
type Known func(model.Ref) bool

// Build returns the graph of resources that are given in the order of their
// declaration. Its error is that of resource.CheckLinks (model.Problems): a
// reference to nothing, one name twice, a cycle.
//
// While a manifest that one of them includes cannot be read before the run, an
// unknown reference is no error, because that manifest may declare it. Neither
// is a reference into a manifest that is excluded.
func Build(resources []*resource.Resource, known Known) (*Graph, error) {
	g := &Graph{byRef: make(map[model.Ref]*Node, len(resources))}
	all := make([]resource.Links, 0, len(resources))
	for _, r := range resources {
		if g.add(r) {
			all = append(all, resource.LinksOf(r))
		}
	}
	g.openEnded = slices.ContainsFunc(resources, IsOpenEnded)
	allowed := func(ref model.Ref) bool { return g.openEnded || g.IsExcluded(ref) || (known != nil && known(ref)) }
	if problems := resource.CheckLinks(all, allowed); len(problems) > 0 {
		return nil, problems
	}
	g.connect()
	g.include()
	g.sort()
	g.relate()
	g.sort()

	return g, nil
}

// Len returns the number of resources.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes returns the nodes in run order. The caller must not change the slice.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Node returns the node of a reference by name or alias, nil when there is none.
func (g *Graph) Node(ref model.Ref) *Node { return g.byRef[ref] }

// add registers a resource under its name and alias, and reports whether it is
// new: one that is identical to one of another document is that one.
func (g *Graph) add(r *resource.Resource) bool {
	n := &Node{Resource: r, Ref: r.Ref(), declared: len(g.nodes)}
	if first, taken := g.byRef[n.Ref]; taken && first.Resource.IsSame(r) {
		return false
	}
	g.nodes = append(g.nodes, n)
	g.byRef[n.Ref] = n
	if alias := r.Meta().Alias; alias != "" {
		g.byRef[model.Ref{Type: n.Ref.Type, Name: alias}] = n
	}

	return true
}

// connect adds the edges that the resources ask for.
func (g *Graph) connect() {
	for _, n := range g.nodes {
		meta := n.Resource.Meta()
		for _, ref := range meta.Require {
			if dep := g.byRef[ref]; dep != nil {
				n.Requires = append(n.Requires, dep)
				g.edge(dep, n, Edge{Reason: requireReason(n.Resource, ref)})
			} else {
				n.RequiresElsewhere = append(n.RequiresElsewhere, ref)
			}
		}
		for _, ref := range meta.Subscribe {
			if dep := g.byRef[ref]; dep != nil {
				n.Subscribes = append(n.Subscribes, dep)
				dep.Subscribers = append(dep.Subscribers, n)
				g.edge(dep, n, Edge{Reason: "subscribe"})
			} else {
				n.SubscribesElsewhere = append(n.SubscribesElsewhere, ref)
			}
		}
	}
}

// requireReason returns what asks for a requirement: the require property, or
// the function of an expression that reads something of the other resource.
func requireReason(r *resource.Resource, ref model.Ref) string {
	for _, need := range r.Taken {
		if need.Ref == ref {
			return need.Property
		}
	}

	return "require"
}

func (g *Graph) edge(from, to *Node, e Edge) {
	e.From, e.To = from.Ref, to.Ref
	to.waits = append(to.waits, e)
	to.Before = append(to.Before, from)
	from.after = append(from.after, to)
}
