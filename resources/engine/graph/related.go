package graph

import "github.com/musterfleet/muster/model"

// Related returns the references of nodes of g, of what must run before any of them, and
// of what runs after.
func (g *Graph) Related(refs []model.Ref) map[model.Ref]bool {
	out := map[model.Ref]bool{}
	for _, next := range []func(*Node) []*Node{func(n *Node) []*Node { return n.Before }, func(n *Node) []*Node { return n.after }} {
		seen := map[*Node]bool{}
		var todo []*Node
		for _, ref := range refs {
			if n := g.byRef[ref]; n != nil {
				todo = append(todo, n)
			}
		}
		for len(todo) > 0 {
			n := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[n] {
				continue
			}
			seen[n], out[n.Ref] = true, true
			todo = append(todo, next(n)...)
		}
	}

	return out
}
