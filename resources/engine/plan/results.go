package plan

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
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
	Until  *Node
	// Pending is the last resource with an effect among this resource and all resources before it.
	// It ignores resources that are noop in every run.
	Pending *Node
}

// Results are the results of the nodes of a graph, by position.
type Results []Result

func (r Results) of(n *Node) *Result { return &r[n.At] }

// IsPartlyApplied reports whether a resource that n subscribes to failed in this run after it may
// have changed. The refresh of n then stays pending until that resource is in its desired state.
// Otherwise every run would repeat it.
func (r Results) IsPartlyApplied(n *Node) bool {
	return slices.ContainsFunc(n.Subscribes, func(dep *Node) bool { return r.of(dep).Failed && r.of(dep).Touched })
}

// WasTouched reports whether a resource or one of its children may have changed.
func (r Results) WasTouched(n *Node) bool {
	return r.of(n).Touched || slices.ContainsFunc(n.Children, r.WasTouched)
}

// IsFollowedUp reports whether a node that follows others must run: a resource that it subscribes
// to or includes changed, may have changed or would change, or a child failed.
func (r Results) IsFollowedUp(n *Node) bool {
	moved := func(dep *Node) bool {
		res := r.of(dep)
		return res.Changed || res.Touched || res.Effect != None
	}
	failed := func(child *Node) bool { return r.of(child).Failed || r.of(child).Unmet }

	return slices.ContainsFunc(n.Subscribes, moved) || slices.ContainsFunc(n.Children, moved) || slices.ContainsFunc(n.Children, failed)
}

// firstDeferred returns the first resource before n whose change a limit defers, or nil.
func (r Results) firstDeferred(n *Node) *Node {
	for _, dep := range n.Before {
		if !r.of(dep).RetryAt.IsZero() {
			return dep
		}
	}

	return nil
}

// History is the transactions of each resource in the earlier commands of a session, by name and by
// alias, oldest first.
type History map[model.Ref][]*model.Transaction

// HistoryForPartial returns the history for the run of a part. It assumes that the rest of the
// graph does not change. failed reports whether a resource of the rest is not in its desired state.
func HistoryForPartial(part *Graph, failed func(model.Ref) bool) History {
	h := History{}
	for _, n := range part.Nodes() {
		for _, ref := range slices.Concat(n.RequiresElsewhere, n.SubscribesElsewhere) {
			if other := part.PartOf().Node(ref); other != nil && h[ref] == nil {
				h[ref] = []*model.Transaction{{Type: ref.Type, Name: ref.Name, Failed: failed(other.Ref)}}
			}
		}
	}

	return h
}

// Knows reports whether an earlier command ran a resource.
func (h History) Knows(ref model.Ref) bool { return len(h[ref]) > 0 }

// failed reports whether the last run of a resource failed. In noop, predictions count too.
func (h History) failed(ref model.Ref, noop bool) bool {
	for _, last := range slices.Backward(h[ref]) {
		if !last.Noop || noop {
			return last.Failed || len(last.UnmetRequirements) > 0
		}
	}

	return false
}

// refreshes reports whether dep changed after it last refreshed subscriber. In noop, predictions
// count too.
func (h History) refreshes(dep, subscriber model.Ref, noop bool) bool {
	for _, change := range slices.Backward(h[dep]) {
		if change.Changed && (!change.Noop || noop) {
			return !slices.ContainsFunc(h[subscriber], func(t *model.Transaction) bool {
				return t.Refreshed && !t.Noop && !t.Failed && t.Timestamp.After(change.Timestamp)
			})
		}
	}

	return false
}
