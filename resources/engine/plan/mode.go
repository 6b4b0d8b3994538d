package plan

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// IsUnasked reports whether a run of a cause was started without anybody asking
// for a change: what it finds different is drift.
func IsUnasked(c model.Cause) bool {
	return c == model.CauseDrift || c == model.CauseSchedule || c == model.CauseHealth
}

// ScopeOf returns what holds for a resource in this run.
func (u *Upstream) ScopeOf(n *graph.Node) resource.Scope {
	root, own := u.Scope, n.Resource.Scope
	if own.Depth == 0 {
		return root
	}
	own.Noop, own.HealthCheckOnly = own.Noop || root.Noop, own.HealthCheckOnly || root.HealthCheckOnly

	return own
}

// IsNoop reports whether a resource must not be changed in this run.
func (u *Upstream) IsNoop(n *graph.Node) bool { return u.Scope.Noop || u.isNoopOnly(n) }

// isNoopOnly reports whether no run of this cause changes a resource, noop or not.
func (u *Upstream) isNoopOnly(n *graph.Node) bool {
	meta := n.Resource.Meta()

	return n.Resource.Scope.Noop || meta.Noop || (IsUnasked(u.Cause) && meta.Drift == model.DriftReport && !u.ScopeOf(n).HealthCheckOnly)
}

// IgnoresDrift reports whether a resource is not even observed in this run.
func (u *Upstream) IgnoresDrift(n *graph.Node) bool {
	return IsUnasked(u.Cause) && n.Resource.Meta().Drift == model.DriftIgnore && !u.ScopeOf(n).HealthCheckOnly
}

// IsObservedFirst reports whether a resource is part of the observation at the
// start of a run. One that includes a manifest is judged by what came of that.
func (u *Upstream) IsObservedFirst(n *graph.Node) bool {
	r := n.Resource

	return r.Excluded == "" && r.Late == nil && r.Type.Include == nil && !u.IgnoresDrift(n) && !u.ScopeOf(n).HealthCheckOnly
}

// FailsFast reports whether the run, or a manifest that declares a resource,
// ends at its first failure.
func (u *Upstream) FailsFast(n *graph.Node) bool {
	return (n.Resource.Scope.Depth == 0 && u.FailOnError) || slices.ContainsFunc(n.Parents, func(p *graph.Node) bool { return p.FailFast })
}

// EndAfter ends the run, and the manifests that fail fast, after a resource of
// them failed.
func (u *Upstream) EndAfter(n *graph.Node) {
	reason := n.Ref.String() + " failed and fail_on_error is set"
	if n.Resource.Scope.Depth == 0 && u.FailOnError && u.Stopped == "" {
		u.Stopped = reason
	}
	for _, p := range n.Parents {
		if p.FailFast && u.Ended[p.Ref] == "" {
			u.Ended[p.Ref] = reason
		}
	}
}

// endedBy returns why all manifests that declare a resource have ended, empty
// while one goes on.
func (u *Upstream) endedBy(n *graph.Node) (reason string) {
	if n.Resource.Scope.Depth == 0 {
		return ""
	}
	for _, p := range n.Parents {
		if reason = cmp.Or(u.Ended[p.Ref], u.endedBy(p)); reason == "" {
			return ""
		}
	}

	return reason
}
