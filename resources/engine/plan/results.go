package plan

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/resources/engine/graph"
)

// Result is what came of a resource, as far as others depend on it.
type Result struct {
	// Begun means that its turn has begun, Done that it has ended.
	Started, Done bool
	// Changed means that it really changed, not in noop, and ChangedAt when.
	Changed   bool
	ChangedAt time.Time
	// Touched means that it changed, or failed and may have.
	Touched       bool
	Failed, Unmet bool
	// PutOff is until when a limit puts its change off, or that of one it comes after; zero
	// for none.
	RetryAt time.Time
	// Effect is what noop predicts. Unless it is None, Until is the resource itself
	// when it is Planned, and when it is Unsettled what must be applied first.
	Effect Effect
	Until  *graph.Node
	// Pending is the last resource with an effect among this one and all it comes
	// after. What noop holds back even in a real run is not among them.
	Pending *graph.Node
}

// Results are those of the nodes of a graph, by their places in it.
type Results []Result

// of returns that of a node.
func (r Results) of(n *graph.Node) *Result { return &r[n.At] }

// IsPartlyApplied reports whether something that n subscribes to failed in this
// run and may have changed all the same: its refresh stays pending until that is
// in its state, or it would be made at every run.
func (r Results) IsPartlyApplied(n *graph.Node) bool {
	return slices.ContainsFunc(n.Subscribes, func(dep *graph.Node) bool { return r.of(dep).Failed && r.of(dep).Touched })
}

// WasTouched reports whether a resource, or one that it includes, may have changed.
func (r Results) WasTouched(n *graph.Node) bool {
	return r.of(n).Touched || slices.ContainsFunc(n.Children, r.WasTouched)
}

// IsFollowedUp reports whether a node that follows others gets its turn: something
// that it subscribes to was changed, or may have been, or would be, or something that
// it includes is not as it was.
func (r Results) IsFollowedUp(n *graph.Node) bool {
	moved := func(dep *graph.Node) bool {
		res := r.of(dep)
		return res.Changed || res.Touched || res.Effect != None
	}
	failed := func(child *graph.Node) bool { return r.of(child).Failed || r.of(child).Unmet }

	return slices.ContainsFunc(n.Subscribes, moved) || slices.ContainsFunc(n.Children, moved) || slices.ContainsFunc(n.Children, failed)
}

// putOff returns the first resource before n of which a limit puts the change off, nil for
// none.
func (r Results) firstDeferred(n *graph.Node) *graph.Node {
	for _, dep := range n.Before {
		if !r.of(dep).RetryAt.IsZero() {
			return dep
		}
	}

	return nil
}
