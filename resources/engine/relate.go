package engine

import "slices"

// relate adds the automatic edges: what needs something comes after what
// provides it. Those that agree with the order of the document are added first,
// so one that goes against it is only there where nothing else gives the need;
// one that would close a cycle is left out, because what was written wins.
func (g *Graph) relate() {
	g.relations()
	var against []unmet
	for _, n := range g.nodes {
		for _, need := range n.relations.Needs {
			candidates := g.provided[need]
			// The nodes stand in an order that what was written allows: an edge from one
			// that stands before cannot close a cycle.
			at := slices.IndexFunc(candidates, func(p *node) bool { return p.at < n.at })
			switch {
			case at >= 0:
				g.automatic(candidates[at], n, need)
			case len(candidates) > 0 && !slices.Contains(candidates, n):
				against = append(against, unmet{n: n, need: need})
			}
		}
		for _, need := range n.relations.NeedsAll {
			for _, p := range g.provided[need] {
				if p.at < n.at {
					g.automatic(p, n, need)
				}
			}
			against = append(against, unmet{n: n, need: need, all: true})
		}
	}
	g.against(against)
}

// unmet is a need that nothing declared before it meets, or not all do that must.
type unmet struct {
	n    *node
	need string
	all  bool
}

// against adds the edges that go against the order of the document.
func (g *Graph) against(needs []unmet) {
	known := ancestry{size: len(g.nodes)}
	for _, u := range needs {
		for _, p := range g.provided[u.need] {
			if p.at > u.n.at && !known.reaches(u.n, p) {
				g.automatic(p, u.n, u.need)
				known.added(p, u.n)
				if !u.all {
					break
				}
			}
		}
	}
}

// relations asks every resource for its relations, and notes who provides what.
// Of a late one that is what those of its properties say that are known.
func (g *Graph) relations() {
	g.provided, g.along, g.removed = map[string][]*node{}, map[string][]*node{}, map[string][]*node{}
	note := func(n *node, who map[string][]*node, what []string) {
		for _, w := range what {
			who[w] = append(who[w], n)
		}
	}
	for _, n := range g.nodes {
		if n.res.Type.Relations == nil || n.res.Excluded != "" {
			continue
		}
		n.relations = n.res.Type.Relations(n.res.Spec)
		note(n, g.provided, n.relations.Provides)
		note(n, g.along, n.relations.Along)
		note(n, g.removed, n.relations.Removes)
	}
}

// automatic adds an edge for a need, unless n comes after p already.
func (g *Graph) automatic(p, n *node, need string) {
	if !slices.Contains(n.before, p) {
		g.edge(p, n, Edge{Reason: need, Automatic: true})
	}
}
