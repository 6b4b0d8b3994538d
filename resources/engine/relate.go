package engine

import (
	"slices"
)

// relate adds the automatic edges: what needs something comes after what
// provides it. Among several providers one that is declared before the needer
// is taken, so that the order of the document holds wherever it can; an edge
// that would close a cycle is left out, because what was written wins.
func (g *Graph) relate() {
	providers := map[string][]*node{}
	g.along = map[string][]*node{}
	needs := make([][]string, len(g.nodes))
	any := false
	for i, n := range g.nodes {
		if n.res.Type.Relations == nil || n.res.Late != nil || n.res.Excluded != "" {
			continue
		}
		relations := n.res.Type.Relations(n.res.Spec)
		n.provides, n.along = relations.Provides, relations.Along
		for _, what := range n.along {
			g.along[what] = append(g.along[what], n)
		}
		needs[i] = relations.Needs
		for _, p := range relations.Provides {
			providers[p] = append(providers[p], n)
			any = true
		}
	}
	if !any {
		return
	}
	reordered := false
	for i, n := range g.nodes {
		for _, need := range needs[i] {
			p := chooseProvider(providers[need], n, reordered)
			if p == nil || slices.Contains(n.before, p) {
				continue
			}
			g.edge(p, n, need)
			reordered = reordered || p.at > n.at
		}
	}
}

// chooseProvider gives the provider to wait for, or nil. The nodes stand in the
// order of what was written: as long as no edge goes against it, waiting for
// one that stands before can never close a cycle.
func chooseProvider(candidates []*node, n *node, reordered bool) *node {
	var later *node
	for _, p := range candidates {
		switch {
		case p == n:
			return nil
		case p.at < n.at && (!reordered || !reaches(n, p)):
			return p
		case p.at > n.at && later == nil && !reaches(n, p):
			later = p
		}
	}

	return later
}

// reaches says that to must run after from.
func reaches(from, to *node) bool {
	seen := map[*node]bool{from: true}
	todo := []*node{from}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n == to {
			return true
		}
		for _, next := range n.after {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}

	return false
}
