package plan

import (
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// refreshDue reports whether a refresh of a resource is due: a resource that it subscribes to
// changed, in this run or in an earlier run that did not make the refresh.
func (u *Upstream) refreshDue(n *Node) bool {
	if !n.Resource.Type.Refreshes {
		return false
	}
	for _, dep := range n.Subscribes {
		if res := u.Results.of(dep); res.Changed || (res.Effect == Planned && u.affects(dep, n)) {
			return true
		}
	}
	for _, ref := range n.SubscribesElsewhere {
		if u.Prior.refreshes(ref, n.Ref, u.IsNoop(n)) {
			return true
		}
	}
	if slices.Contains(u.Requested, n.Ref) {
		return true
	}
	// A pending refresh waits until a resource that may have caused it is in its desired state.
	// Otherwise every run would repeat it while all of them fail.
	if !u.Pending[n.Ref] || u.Results.IsPartlyApplied(n) {
		return false
	}
	// A failed resource elsewhere may be partly applied.
	failed := func(ref model.Ref) bool { return u.Prior.failed(ref, u.IsNoop(n)) }
	if slices.ContainsFunc(n.SubscribesElsewhere, failed) {
		return false
	}

	return len(n.SubscribesElsewhere) > 0 || slices.ContainsFunc(n.Subscribes, func(dep *Node) bool {
		return !u.Results.of(dep).Failed && !u.Results.of(dep).Unmet
	})
}

// isRefreshed reports whether n was started by something else after the last change of the
// resources that it subscribes to, so it needs no refresh.
func (u *Upstream) isRefreshed(n *Node, state resource.State) bool {
	s, ok := state.(resource.Starter)
	if !ok || u.IsNoop(n) || len(n.SubscribesElsewhere) > 0 || slices.Contains(u.Requested, n.Ref) {
		return false
	}
	var last time.Time
	for _, dep := range n.Subscribes {
		if res := u.Results.of(dep); res.Changed && res.ChangedAt.After(last) {
			last = res.ChangedAt
		}
	}

	return !last.IsZero() && s.IsStartedSince(last)
}

// ToNotify returns the subscribers of a node and of its parents that have no pending refresh. It
// may return duplicates.
func (u *Upstream) ToNotify(n *Node) []model.Ref {
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

// Refreshable returns the nodes that may have a pending refresh.
func Refreshable(nodes []*Node) []model.Ref {
	var refs []model.Ref
	for _, n := range nodes {
		if n.Resource.Type.Refreshes && len(n.Subscribes) > 0 && n.Resource.Excluded == "" && !n.Resource.Meta().Noop {
			refs = append(refs, n.Ref)
		}
	}

	return refs
}
