package graph

import (
	"container/heap"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// sort puts the nodes into run order: after their dependencies, otherwise in the order of
// declaration. The graph has no cycles.
func (g *Graph) sort() {
	waiting := make([]int, len(g.nodes)) // by position in the document
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

// Related returns the references of nodes, of all nodes that must run before them, and of all nodes
// that run after them.
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

// Step is a resource in run order with the edges that it waits for.
type Step struct {
	Resource *resource.Resource
	// Waits are the edges to the resource: the declared edges in order, then the automatic edges.
	Waits []Edge
	// Elsewhere are the edges from resources outside the graph: resources of earlier commands of
	// the session, or of manifests that are excluded or not read yet. From is the reference as
	// written.
	Elsewhere []Edge
}

// Steps returns the resources in run order. A run deviates from this order only if a resource
// misses something that another resource implicitly creates.
func (g *Graph) Steps() []Step {
	out := make([]Step, len(g.nodes))
	for i, n := range g.nodes {
		out[i].Resource, out[i].Waits = n.Resource, n.waits
		for _, ref := range n.RequiresElsewhere {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.Ref, Reason: requireReason(n.Resource, ref)})
		}
		for _, ref := range n.SubscribesElsewhere {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.Ref, Reason: "subscribe"})
		}
	}

	return out
}
