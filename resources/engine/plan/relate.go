package plan

import (
	"slices"

	"github.com/musterfleet/muster/resources/resource"
)

// relate adds the automatic edges: a node runs after the providers of its needs. Edges in
// the order of the document come first. An edge against this order is added only if no other node
// meets the need. An edge that would close a cycle is left out, because declared edges have
// priority.
func (g *Graph) relate() {
	g.collectRelations()
	var against []unmet
	for _, n := range g.nodes {
		for _, need := range n.Relations.Needs {
			candidates := g.Providers[need.What]
			if need.All {
				for _, p := range candidates {
					if p.At < n.At {
						g.automatic(p, n, need)
					}
				}
				against = append(against, unmet{of: n, need: need})
				continue
			}
			// The nodes are in a valid order, so an edge from an earlier node cannot close a cycle.
			at := slices.IndexFunc(candidates, func(p *Node) bool { return p.At < n.At })
			switch {
			case at >= 0:
				g.automatic(candidates[at], n, need)
			case len(candidates) > 0 && !slices.Contains(candidates, n):
				against = append(against, unmet{of: n, need: need})
			}
		}
	}
	g.addAgainst(against)
}

// unmet is a need that no earlier node meets, or that not all of its providers meet.
type unmet struct {
	of   *Node
	need resource.Need
}

// ProviderBeside returns a resource other than n that provides something, or nil. In a part it
// searches the full graph.
func (g *Graph) ProviderBeside(n *Node, what string) *Node {
	if g.partOf != nil {
		g = g.partOf
	}
	for _, p := range g.Providers[what] {
		if p.Ref != n.Ref {
			return p
		}
	}

	return nil
}

func (g *Graph) addAgainst(needs []unmet) {
	for _, u := range needs {
		for _, p := range g.Providers[u.need.What] {
			if p.At > u.of.At && !reaches(u.of, p) {
				g.automatic(p, u.of, u.need)
				if !u.need.All {
					break
				}
			}
		}
	}
}

// collectRelations collects the relations of all resources. Deferred properties are not included.
func (g *Graph) collectRelations() {
	g.Providers, g.ImplicitCreators, g.Removers = map[string][]*Node{}, map[string][]*Node{}, map[string][]*Node{}
	for _, n := range g.nodes {
		if n.Resource.Type.Relations == nil || n.Resource.Excluded != "" {
			continue
		}
		n.Relations = n.Resource.Type.Relations(n.Resource.Spec)
		for _, p := range n.Relations.Provides {
			who := g.Providers
			if p.Implicit {
				who = g.ImplicitCreators
			}
			who[p.What] = append(who[p.What], n)
		}
		for _, what := range n.Relations.Removes {
			g.Removers[what] = append(g.Removers[what], n)
		}
	}
}

// automatic adds an edge for a need unless n already runs after p.
func (g *Graph) automatic(p, n *Node, need resource.Need) {
	if slices.Contains(n.Before, p) {
		return
	}
	g.edge(p, n, Edge{Reason: need.What, Automatic: true})
	if need.IsGate() {
		n.Requires = append(n.Requires, p)
	}
}

// reaches reports whether from must run before to, or is the same node.
func reaches(from, to *Node) bool {
	return reachable([]*Node{to}, func(n *Node) []*Node { return n.Before })[from]
}
