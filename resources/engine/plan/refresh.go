package plan

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// refreshDue reports whether a refresh of a resource is due: what it subscribes
// to changed, in this run or in one that did not come to the refresh.
func (u *Upstream) refreshDue(n *graph.Node) bool {
	if !n.Resource.Type.Refreshes {
		return false
	}
	for _, dep := range n.Subscribes {
		if res := u.result(dep); res.Changed || (res.Effect == Planned && u.affects(dep, n)) {
			return true
		}
	}
	for _, ref := range n.SubscribesElsewhere {
		if u.Earlier.refreshes(ref, n.Ref, u.IsNoop(n)) {
			return true
		}
	}
	if slices.Contains(u.Requested, n.Ref) {
		return true
	}
	// A pending refresh is made once something it may stem from is in its state:
	// while all of that fails, it would be made at every run.
	return u.Pending[n.Ref] && !u.IsPartlyApplied(n) && slices.ContainsFunc(n.Subscribes, func(dep *graph.Node) bool {
		return !u.result(dep).Failed && !u.result(dep).Unmet
	})
}

// isRefreshed reports whether a refresh of n is needless, because something else
// started it after the last change of what it subscribes to.
func (u *Upstream) isRefreshed(n *graph.Node, state resource.State) bool {
	s, ok := state.(resource.Starter)
	if !ok || u.IsNoop(n) || len(n.SubscribesElsewhere) > 0 || slices.Contains(u.Requested, n.Ref) {
		return false
	}
	var last time.Time
	for _, dep := range n.Subscribes {
		if res := u.result(dep); res.Changed && res.ChangedAt.After(last) {
			last = res.ChangedAt
		}
	}

	return !last.IsZero() && s.IsStartedSince(last)
}

// IsPartlyApplied reports whether something that n subscribes to failed in this
// run and may have changed all the same: its refresh stays pending until that is
// in its state, or it would be made at every run.
func (u *Upstream) IsPartlyApplied(n *graph.Node) bool {
	return slices.ContainsFunc(n.Subscribes, func(dep *graph.Node) bool { return u.result(dep).Failed && u.result(dep).Touched })
}

// WasTouched reports whether a resource, or one that it includes, may have changed.
func (u *Upstream) WasTouched(n *graph.Node) bool {
	return u.result(n).Touched || slices.ContainsFunc(n.Children, u.WasTouched)
}

// IsFollowedUp reports whether a node that follows others gets its turn: something
// that it subscribes to was changed, or may have been, or would be, or something that
// it includes is not as it was.
func (u *Upstream) IsFollowedUp(n *graph.Node) bool {
	moved := func(dep *graph.Node) bool {
		res := u.result(dep)
		return res.Changed || res.Touched || res.Effect != None
	}
	failed := func(child *graph.Node) bool { return u.result(child).Failed || u.result(child).Unmet }

	return slices.ContainsFunc(n.Subscribes, moved) || slices.ContainsFunc(n.Children, moved) || slices.ContainsFunc(n.Children, failed)
}

// ToNotify returns the subscribers of a node, and of those that include it, that
// have no refresh pending yet. One may be there twice.
func (u *Upstream) ToNotify(n *graph.Node) []model.Ref {
	var refs []model.Ref
	for _, s := range n.Subscribers {
		if s.Resource.Type.Refreshes && !u.Pending[s.Ref] && s.Resource.Excluded == "" && !u.IsNoop(s) {
			refs = append(refs, s.Ref)
		}
	}
	for _, p := range n.Parents {
		refs = append(refs, u.ToNotify(p)...)
	}

	return refs
}

// Refreshable returns the nodes that may have a refresh pending.
func Refreshable(nodes []*graph.Node) []model.Ref {
	var refs []model.Ref
	for _, n := range nodes {
		if n.Resource.Type.Refreshes && len(n.Subscribes) > 0 && n.Resource.Excluded == "" && !n.Resource.Meta().Noop {
			refs = append(refs, n.Ref)
		}
	}

	return refs
}
