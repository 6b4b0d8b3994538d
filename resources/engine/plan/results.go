package plan

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/resources/engine/graph"
)

// Result is the result of a resource as far as other resources depend on it.
type Result struct {
	// Started and Done report whether the resource started and ended.
	Started, Done bool
	// Changed reports a real change. ChangedAt is its time.
	Changed   bool
	ChangedAt time.Time
	// Touched reports that it changed, or that it failed and may have changed.
	Touched       bool
	Failed, Unmet bool
	// RetryAt is the time until which a limit defers its change, or the change of a resource before
	// it. Zero means not deferred.
	RetryAt time.Time
	// Effect is the prediction of noop. Until is the resource itself if it is Planned, or the
	// resource that must be applied first if it is Unsettled.
	Effect Effect
	Until  *graph.Node
	// Pending is the last resource with an effect among this resource and all resources before it.
	// It ignores resources that are noop in every run.
	Pending *graph.Node
}

// Results are the results of the nodes of a graph, by position.
type Results []Result

// of returns the result of a node.
func (r Results) of(n *graph.Node) *Result { return &r[n.At] }

// IsPartlyApplied reports whether a resource that n subscribes to failed in this run after it may
// have changed. The refresh of n then stays pending until that resource is in its desired state.
// Otherwise every run would repeat it.
func (r Results) IsPartlyApplied(n *graph.Node) bool {
	return slices.ContainsFunc(n.Subscribes, func(dep *graph.Node) bool { return r.of(dep).Failed && r.of(dep).Touched })
}

// WasTouched reports whether a resource or one of its children may have changed.
func (r Results) WasTouched(n *graph.Node) bool {
	return r.of(n).Touched || slices.ContainsFunc(n.Children, r.WasTouched)
}

// IsFollowedUp reports whether a node that follows others must run: a resource that it subscribes
// to or includes changed, may have changed or would change, or a child failed.
func (r Results) IsFollowedUp(n *graph.Node) bool {
	moved := func(dep *graph.Node) bool {
		res := r.of(dep)
		return res.Changed || res.Touched || res.Effect != None
	}
	failed := func(child *graph.Node) bool { return r.of(child).Failed || r.of(child).Unmet }

	return slices.ContainsFunc(n.Subscribes, moved) || slices.ContainsFunc(n.Children, moved) || slices.ContainsFunc(n.Children, failed)
}

// firstDeferred returns the first resource before n whose change a limit defers, or nil.
func (r Results) firstDeferred(n *graph.Node) *graph.Node {
	for _, dep := range n.Before {
		if !r.of(dep).RetryAt.IsZero() {
			return dep
		}
	}

	return nil
}
