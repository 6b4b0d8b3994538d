package graph

import "slices"

// relate adds the automatic edges: what needs something runs after what
// provides it. Edges that agree with the order of the document come first, so
// one against it exists only where nothing else meets the need; one that would
// close a cycle is left out, because what was written wins.
func (g *Graph) relate() {
	g.collectRelations()
	var against []need
	for _, n := range g.nodes {
		for _, what := range n.Relations.Needs {
			candidates := g.Providers[what]
			// The nodes stand in an order that what was written allows: an edge from one
			// that stands before cannot close a cycle.
			at := slices.IndexFunc(candidates, func(p *Node) bool { return p.At < n.At })
			switch {
			case at >= 0:
				g.automatic(candidates[at], n, what)
			case len(candidates) > 0 && !slices.Contains(candidates, n):
				against = append(against, need{of: n, what: what})
			}
		}
		for _, what := range n.Relations.NeedsAll {
			for _, p := range g.Providers[what] {
				if p.At < n.At {
					g.automatic(p, n, what)
				}
			}
			against = append(against, need{of: n, what: what, all: true})
		}
	}
	g.addAgainst(against)
}

// need is a need that nothing declared before it meets, or not all that must.
type need struct {
	of   *Node
	what string
	all  bool
}

// addAgainst adds the edges that go against the order of the document.
func (g *Graph) addAgainst(needs []need) {
	known := ancestry{size: len(g.nodes)}
	for _, u := range needs {
		for _, p := range g.Providers[u.what] {
			if p.At > u.of.At && !known.reaches(u.of, p) {
				g.automatic(p, u.of, u.what)
				known.added(p, u.of)
				if !u.all {
					break
				}
			}
		}
	}
}

// collectRelations asks every resource for its relations. Of a late one they are
// those of the properties that are known.
func (g *Graph) collectRelations() {
	g.Providers, g.ImplicitCreators, g.Removers = map[string][]*Node{}, map[string][]*Node{}, map[string][]*Node{}
	note := func(n *Node, who map[string][]*Node, what []string) {
		for _, w := range what {
			who[w] = append(who[w], n)
		}
	}
	for _, n := range g.nodes {
		if n.Resource.Type.Relations == nil || n.Resource.Excluded != "" {
			continue
		}
		n.Relations = n.Resource.Type.Relations(n.Resource.Spec)
		note(n, g.Providers, n.Relations.Provides)
		note(n, g.ImplicitCreators, n.Relations.Along)
		note(n, g.Removers, n.Relations.Removes)
	}
}

// automatic adds an edge for a need, unless n runs after p already.
func (g *Graph) automatic(p, n *Node, what string) {
	if !slices.Contains(n.Before, p) {
		g.edge(p, n, Edge{Reason: what, Automatic: true})
	}
}
