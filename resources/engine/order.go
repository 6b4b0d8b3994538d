package engine

import "container/heap"

// sort brings the nodes into the order in which they run: after everything they
// depend on, and otherwise as they were declared. There is no cycle among them.
func (g *Graph) sort() {
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
	g.nodes = order
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
