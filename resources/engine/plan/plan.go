// Package plan orders the resources of a manifest in a graph, and decides what to do with each. It
// is pure: the graph depends on the resources, and a decision depends on the graph, the observation
// and the results of earlier resources. It uses no host, clock or log.
package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Kind is the kind of a Decision.
type Kind uint8

// The kinds of decisions.
const (
	// Stable is a resource in its desired state.
	Stable Kind = iota
	// Change makes a change: Plan and Refresh are set.
	Change
	// Skip does not run the resource: Reason is set, and NotRun or Unmet.
	Skip
	// Unknown is a resource that noop cannot predict: Until is set.
	Unknown
	// Wait needs something first: For is set. The caller then calls Decide again.
	Wait
	// Fail is a resource that cannot be observed or must not be changed: Err is set.
	Fail
	// CheckOnly only runs the health checks of the resource.
	CheckOnly
)

// Need is what a Wait waits for.
type Need uint8

// The needs of a Wait.
const (
	// Properties are deferred properties.
	Properties Need = iota
	// State is a missing or outdated observation.
	State
	// Guards are the guard commands of the resource.
	Guards
	// Manifest is the unread manifest that the resource includes.
	Manifest
	// Creator is another resource that implicitly creates what is missing. It runs first.
	Creator
)

// Decision is the next step for a resource.
type Decision struct {
	Kind Kind
	// Plan and Refresh are the content of a Change. Refresh is also set for a Stable resource whose
	// pending refresh needs no action.
	Plan    resource.Plan
	Refresh bool
	// Reason is why a resource is skipped, or what an Unknown resource waits for.
	Reason string
	// NotRun marks a Skip because the run or the manifest has ended, or because a limit defers the
	// change until RetryAt.
	NotRun  bool
	RetryAt time.Time
	// Unmet are the unmet requirements of a Skip.
	Unmet []model.Ref
	// Until is the resource that must be applied before an Unknown resource is known. For a Change
	// in noop, it is the resource that must be applied before the result of the guards is certain,
	// or nil.
	Until *Node
	// More is, for a Change in noop, a resource that may cause more changes, or nil.
	More *Node
	For  Need
	// Creator is the node of a Wait for Creator.
	Creator *Node
	Err     error
}

// Observation is the observation of a resource.
type Observation struct {
	// Spec is the properties. It is nil while deferred properties are not resolved.
	Spec  resource.Spec
	State resource.State
	// Valid reports whether nothing has changed since State was read.
	Valid bool
	// Guarded reports whether State contains the results of the guards.
	Guarded bool
	// Err is the error of observing, instead of State. GuardErr is the error of the guards.
	Err, GuardErr error
}

// Effect is the effect of a resource on later resources in noop.
type Effect uint8

// The effects of a resource.
const (
	// None has no effect.
	None Effect = iota
	// Planned would change something.
	Planned
	// Unsettled may change something. It is known after Result.Until is applied.
	Unsettled
)

// Upstream is what a run knows when it decides on a resource.
type Upstream struct {
	Terms
	Graph *Graph
	// Results are the results of the nodes, by position in the graph.
	Results Results
	Prior   History
	// Pending are the pending refreshes of this run and of earlier runs. Requested are the
	// refreshes that the caller requests.
	Pending   map[model.Ref]bool
	Requested []model.Ref
	// Stopped is why the run stopped. Ended is why the child manifest of a resource stopped.
	Stopped string
	Ended   map[model.Ref]string
}

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
func (t *Terms) ScopeOf(n *Node) resource.Scope {
	root, own := t.Scope, n.Resource.Scope
	if own.Depth == 0 {
		return root
	}
	own.Noop, own.HealthCheckOnly = own.Noop || root.Noop, own.HealthCheckOnly || root.HealthCheckOnly

	return own
}

// IsNoop reports whether a resource must not be changed in this run.
func (t *Terms) IsNoop(n *Node) bool { return t.Scope.Noop || t.isNoopOnly(n) }

// isNoopOnly reports whether runs with this cause never change a resource.
func (t *Terms) isNoopOnly(n *Node) bool {
	meta := n.Resource.Meta()

	return n.Resource.Scope.Noop || meta.Noop || (t.isUnrequested(n) && meta.Drift == model.DriftReport && !t.ScopeOf(n).HealthCheckOnly)
}

// isUnrequested reports whether nobody requested the run of a resource, so a difference is drift.
func (t *Terms) isUnrequested(n *Node) bool {
	return t.Cause.IsUnasked() || t.AlreadyConverged != nil && t.AlreadyConverged(n.Ref)
}

// IgnoresDrift reports whether this run does not observe a resource.
func (t *Terms) IgnoresDrift(n *Node) bool {
	return t.isUnrequested(n) && n.Resource.Meta().Drift == model.DriftIgnore && !t.ScopeOf(n).HealthCheckOnly
}

// IsObservedFirst reports whether a resource is observed at the start of a run. A resource that
// includes a manifest depends on the results of its children.
func (t *Terms) IsObservedFirst(n *Node) bool {
	r := n.Resource

	return r.Excluded == "" && r.ResolveDeferred == nil && r.Type.Include == nil && !t.IgnoresDrift(n) && !t.ScopeOf(n).HealthCheckOnly
}

// FailsFast reports whether the run, or a manifest that contains a resource, ends at its first
// failure.
func (t *Terms) FailsFast(n *Node) bool {
	return (n.Resource.Scope.Depth == 0 && t.FailOnError) || slices.ContainsFunc(n.Parents, func(p *Node) bool { return p.FailFast })
}

// EndAfter ends the run, and the manifests that fail fast, after a failed resource.
func (u *Upstream) EndAfter(n *Node) {
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
func (u *Upstream) endedBy(n *Node) (reason string) {
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
