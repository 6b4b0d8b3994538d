package graph

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

// addAgainst adds edges against the order of the document.
func (g *Graph) addAgainst(needs []unmet) {
	known := ancestry{size: len(g.nodes)}
	for _, u := range needs {
		for _, p := range g.Providers[u.need.What] {
			if p.At > u.of.At && !known.reaches(u.of, p) {
				g.automatic(p, u.of, u.need)
				known.added(p, u.of)
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

// ancestry answers which nodes must run before others. It caches the ancestors of a few nodes,
// because walking the graph for each question would cost the square of the number of resources. The
// caller reports every edge that it adds.
type ancestry struct {
	size  int
	known [8]ancestors
	next  int
}

// ancestors are all nodes that must run before a node.
type ancestors struct {
	of *Node
	// seen stores, by position in the document, the number of the walk that found a node.
	seen []int
	walk int
}

func (a *ancestors) has(n *Node) bool { return a.seen[n.declared] == a.walk }

// reaches reports whether from must run before to, or is the same node.
func (a *ancestry) reaches(from, to *Node) bool {
	if from == to {
		return true
	}
	at := slices.IndexFunc(a.known[:], func(k ancestors) bool { return k.of == to })
	if at < 0 {
		at = a.next
		a.next = (a.next + 1) % len(a.known)
		a.known[at].find(to, a.size)
	}

	return a.known[at].has(from)
}

func (a *ancestors) find(of *Node, size int) {
	if a.seen == nil {
		a.seen = make([]int, size)
	}
	a.of = of
	a.walk++
	for todo := []*Node{of}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range n.Before {
			if !a.has(p) {
				a.seen[p.declared] = a.walk
				todo = append(todo, p)
			}
		}
	}
}

// added drops the cached answers that a new edge between from and to invalidates.
func (a *ancestry) added(from, to *Node) {
	for i := range a.known {
		if k := &a.known[i]; k.of != nil && (k.of == to || k.has(to)) && !k.has(from) {
			k.of = nil
		}
	}
}
