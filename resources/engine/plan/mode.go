package plan

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Terms are the settings of a run.
type Terms struct {
	Cause model.Cause
	// AlreadyConverged reports whether an earlier run converged the resource for this cause, so a
	// difference is drift. Nil means never.
	AlreadyConverged func(model.Ref) bool
	// Scope is the scope of the root manifest. FailOnError reports whether the run ends at its
	// first failure.
	Scope       resource.Scope
	FailOnError bool
}

// ScopeOf returns the scope of a resource in this run.
func (t *Terms) ScopeOf(n *graph.Node) resource.Scope {
	root, own := t.Scope, n.Resource.Scope
	if own.Depth == 0 {
		return root
	}
	own.Noop, own.HealthCheckOnly = own.Noop || root.Noop, own.HealthCheckOnly || root.HealthCheckOnly

	return own
}

// IsNoop reports whether a resource must not be changed in this run.
func (t *Terms) IsNoop(n *graph.Node) bool { return t.Scope.Noop || t.isNoopOnly(n) }

// isNoopOnly reports whether runs with this cause never change a resource.
func (t *Terms) isNoopOnly(n *graph.Node) bool {
	meta := n.Resource.Meta()

	return n.Resource.Scope.Noop || meta.Noop || (t.isUnrequested(n) && meta.Drift == model.DriftReport && !t.ScopeOf(n).HealthCheckOnly)
}

// isUnrequested reports whether nobody requested the run of a resource, so a difference is drift.
func (t *Terms) isUnrequested(n *graph.Node) bool {
	return t.Cause.IsUnasked() || t.AlreadyConverged != nil && t.AlreadyConverged(n.Ref)
}

// IgnoresDrift reports whether this run does not observe a resource.
func (t *Terms) IgnoresDrift(n *graph.Node) bool {
	return t.isUnrequested(n) && n.Resource.Meta().Drift == model.DriftIgnore && !t.ScopeOf(n).HealthCheckOnly
}

// IsObservedFirst reports whether a resource is observed at the start of a run. A resource that
// includes a manifest depends on the results of its children.
func (t *Terms) IsObservedFirst(n *graph.Node) bool {
	r := n.Resource

	return r.Excluded == "" && r.ResolveDeferred == nil && r.Type.Include == nil && !t.IgnoresDrift(n) && !t.ScopeOf(n).HealthCheckOnly
}

// FailsFast reports whether the run, or a manifest that contains a resource, ends at its first
// failure.
func (t *Terms) FailsFast(n *graph.Node) bool {
	return (n.Resource.Scope.Depth == 0 && t.FailOnError) || slices.ContainsFunc(n.Parents, func(p *graph.Node) bool { return p.FailFast })
}

// EndAfter ends the run, and the manifests that fail fast, after a failed resource.
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

// endedBy returns why all manifests that contain a resource have ended. It is empty while one of
// them continues.
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
