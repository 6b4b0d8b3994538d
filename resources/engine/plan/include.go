package plan

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// IsOpenEnded reports whether a resource includes a manifest that is unknown before the run.
func IsOpenEnded(r *resource.Resource) bool {
	return r.Expand != nil || (isExcludedInclude(r) && r.LeftOut == nil)
}

func isExcludedInclude(r *resource.Resource) bool { return r.Type.Include != nil && r.Excluded != "" }

// IsExcluded reports whether a reference may belong to an excluded manifest.
func (g *Graph) IsExcluded(ref model.Ref) bool {
	return g.IsKnownExcluded(ref) || slices.ContainsFunc(g.nodes, func(n *Node) bool { return isExcludedInclude(n.Resource) && n.Resource.LeftOut == nil })
}

// IsKnownExcluded reports whether a reference belongs to a known resource of an excluded manifest.
func (g *Graph) IsKnownExcluded(ref model.Ref) bool {
	return slices.ContainsFunc(g.nodes, func(n *Node) bool { return n.Resource.LeftOut[ref] })
}

// include connects included resources to their parents, outer ones first. The children run before
// their parent and after everything that it waits for. A failed requirement of the parent skips
// them. A resource with several declarations uses the first.
func (g *Graph) include() {
	for _, n := range slices.Backward(g.nodes) {
		for _, res := range n.Resource.Children {
			child := g.byRef[res.Ref()]
			if child == nil {
				continue
			}
			n.Children, child.Parents = append(n.Children, child), append(child.Parents, n)
			n.FailFast = n.FailFast || res.Scope.FailOnError
			if child.Resource == res {
				g.gate(n, child)
			}
		}
		for _, child := range n.Children {
			g.edge(child, n, Edge{Reason: "part of it"})
		}
	}
	g.waitForUnknown()
}

// gate makes an included resource wait for everything that its parent waits for.
func (g *Graph) gate(n, child *Node) {
	child.Owner = n
	child.Requires = append(child.Requires, n.Requires...)
	child.RequiresElsewhere = append(child.RequiresElsewhere, n.RequiresElsewhere...)
	for _, dep := range n.Before {
		if !slices.Contains(child.Before, dep) {
			g.edge(dep, child, Edge{Reason: "needed by " + n.Ref.String()})
		}
	}
}

// waitForUnknown makes each node with an unknown reference wait for the manifests that are read
// during the run, because they may declare it.
func (g *Graph) waitForUnknown() {
	var unread []*Node
	for _, n := range g.nodes {
		if n.Resource.Expand != nil {
			unread = append(unread, n)
		}
	}
	for _, n := range g.nodes {
		if len(n.RequiresElsewhere)+len(n.SubscribesElsewhere) == 0 {
			continue
		}
		for _, l := range unread {
			if !slices.Contains(n.Before, l) && !reaches(n, l) {
				g.edge(l, n, Edge{Reason: "may declare what it refers to", Automatic: true})
			}
		}
	}
}

// Expand returns the graph after the manifest of n was read. The new resources precede n. Resources
// that the graph contains are not added again. The error is the error of Build.
func (g *Graph) Expand(n *Node, found resource.Expansion, known Known) (*Graph, error) {
	g.number(found.Resources)
	fresh := slices.DeleteFunc(slices.Clone(found.Resources), func(res *resource.Resource) bool {
		have := g.byRef[res.Ref()]
		return have != nil && have.Resource.IsSame(res)
	})
	expanded := *n.Resource
	expanded.Children, expanded.Messages, expanded.Expand = found.Children, found.Messages, nil
	all := make([]*resource.Resource, 0, len(g.nodes)+len(fresh))
	for _, other := range g.declared() {
		if other == n {
			all = append(append(all, fresh...), &expanded)
		} else {
			all = append(all, other.Resource)
		}
	}

	return Build(all, known)
}

// number gives each including resource a free number if the graph contains a different resource
// with its name. Manifests that are read during the run do not know each other.
func (g *Graph) number(found []*resource.Resource) {
	taken := map[model.Ref]*resource.Resource{}
	for _, res := range found {
		for res.Type.Include != nil {
			have := taken[res.Ref()]
			if n := g.byRef[res.Ref()]; have == nil && n != nil {
				have = n.Resource
			}
			if have == nil || have.IsSame(res) {
				break
			}
			res.Instance = max(res.Instance, 1) + 1
		}
		taken[res.Ref()] = res
	}
}

func (g *Graph) declared() []*Node {
	nodes := slices.Clone(g.nodes)
	slices.SortFunc(nodes, byDeclaration)

	return nodes
}

func byDeclaration(a, b *Node) int { return a.declared - b.declared }
