package graph

import "github.com/musterfleet/muster/resources/resource"

// Step is a resource at its place in a run, with what it waits for.
type Step struct {
	Resource *resource.Resource
	// Waits are the edges that lead to it: those that its manifest asks for, in
	// its order, then the automatic ones.
	Waits []Edge
	// Elsewhere are the edges from what is not in the graph: resources of earlier
	// commands of the session, or of manifests that are excluded or not read yet.
	// From is as it was written.
	Elsewhere []Edge
}

// Steps returns the resources in run order with what each waits for. A run
// leaves that order only for a resource that misses what another one creates
// on its way.
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
