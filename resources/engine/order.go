package engine

import "container/heap"

// sort brings the nodes into the order in which they run: after everything they
// depend on, and otherwise as they were declared.
func (g *Graph) sort() error {
	waiting := make(map[*node]int, len(g.nodes))
	ready := &declarationHeap{}
	for _, n := range g.nodes {
		waiting[n] = len(n.before)
		if len(n.before) == 0 {
			heap.Push(ready, n)
		}
	}
	order := make([]*node, 0, len(g.nodes))
	for ready.Len() > 0 {
		n := heap.Pop(ready).(*node)
		n.at = len(order)
		order = append(order, n)
		for _, next := range n.after {
			if waiting[next]--; waiting[next] == 0 {
				heap.Push(ready, next)
			}
		}
	}
	if len(order) < len(g.nodes) {
		return cycleError(g.findCycle(waiting))
	}
	g.nodes = order

	return nil
}

// findCycle walks back from a node that never became ready; sooner or later it
// meets a node again.
func (g *Graph) findCycle(waiting map[*node]int) []*node {
	var n *node
	for _, candidate := range g.nodes {
		if waiting[candidate] > 0 && (n == nil || candidate.declared < n.declared) {
			n = candidate
		}
	}
	var path []*node
	seen := map[*node]int{}
	for {
		if at, again := seen[n]; again {
			return path[at:]
		}
		seen[n] = len(path)
		path = append(path, n)
		for _, dep := range n.before {
			if waiting[dep] > 0 {
				n = dep
				break
			}
		}
	}
}

// declarationHeap gives the node that was declared first.
type declarationHeap []*node

func (h declarationHeap) Len() int           { return len(h) }
func (h declarationHeap) Less(i, j int) bool { return h[i].declared < h[j].declared }
func (h declarationHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds x, for container/heap.
func (h *declarationHeap) Push(x any) { *h = append(*h, x.(*node)) }

// Pop takes the last, for container/heap.
func (h *declarationHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]

	return n
}
