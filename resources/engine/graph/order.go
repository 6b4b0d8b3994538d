package graph

import "container/heap"

// sort brings the nodes into run order: after everything they depend on, and
// otherwise as they were declared. There is no cycle among them.
func (g *Graph) sort() {
	waiting := make([]int, len(g.nodes)) // by their place in the document
	ready := &declarationHeap{}
	for _, n := range g.nodes {
		waiting[n.declared] = len(n.Before)
		if len(n.Before) == 0 {
			heap.Push(ready, n)
		}
	}
	order := make([]*Node, 0, len(g.nodes))
	for ready.Len() > 0 {
		n := heap.Pop(ready).(*Node)
		n.At = len(order)
		order = append(order, n)
		for _, next := range n.after {
			if waiting[next.declared]--; waiting[next.declared] == 0 {
				heap.Push(ready, next)
			}
		}
	}
	g.nodes = order
}

// declarationHeap pops the node that was declared first.
type declarationHeap []*Node

func (h declarationHeap) Len() int           { return len(h) }
func (h declarationHeap) Less(i, j int) bool { return h[i].declared < h[j].declared }
func (h declarationHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds x, for container/heap.
func (h *declarationHeap) Push(x any) { *h = append(*h, x.(*Node)) }

// Pop removes and returns the last node, for container/heap.
func (h *declarationHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]

	return n
}
