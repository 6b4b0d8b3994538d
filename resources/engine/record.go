package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// recorder records the results of resources in their transactions and calls the functions of
// Options.
type recorder struct {
	*access

	opts      Options
	refreshes *pendingRefreshes
	deferred  []deferredChange
}

// end ends the transaction of a node. interrupted reports that its health checks were interrupted.
func (r *recorder) end(n *graph.Node, t *model.Transaction, interrupted bool) {
	if p := r.observer.provider(n); p != nil {
		t.Provider = p.Name()
	}
	if !r.isSensitive(n) {
		r.report.describe(t, r.observer.spec(n), r.observer.state(n))
		t.Properties, t.Status = r.secrets.document(t.Properties), r.secrets.document(t.Status)
	}
	if state := r.observer.state(n); r.opts.RecordOwnState != nil && state != nil {
		r.opts.RecordOwnState(n.Ref, state)
	}
	r.End(n)
	if l := r.deferredOf(n.Ref); l != nil {
		l.interrupted = interrupted
		r.report.hold(n, t)
		return
	}
	r.register(n, t, interrupted)
	r.report.end(n, t)
}

// register passes on the registrations of a resource after it ran. A run that only checks health
// registers nothing, but ends the registrations of critical resources.
func (r *recorder) register(n *graph.Node, t *model.Transaction, interrupted bool) {
	entries := n.Resource.Meta().RegisterWhenStable
	lost := !t.OK() || t.Skipped
	switch {
	case r.opts.Register == nil || len(entries) == 0 || t.NotRun:
	case r.IsNoop(n) || r.IgnoresDrift(n):
	case interrupted && !lost:
	case lost:
		r.opts.Register(n.Ref, nil)
	case !t.HealthCheckOnly:
		r.opts.Register(n.Ref, entries)
	}
}

// repaired counts and describes a change that repaired drift.
func (r *recorder) repaired(n *graph.Node, t *model.Transaction, p resource.Plan, made time.Time) {
	if !t.Changed {
		return
	}
	r.report.noteDrift(n, p, true)
	seen := r.seen(n)
	if seen.IsZero() {
		seen = r.opts.Woken
	}
	r.report.repaired(t, p, seen, made)
}

// seen returns the time when drift of a resource was detected, or zero.
func (r *recorder) seen(n *graph.Node) time.Time {
	if r.opts.DriftSince == nil {
		return time.Time{}
	}

	return r.opts.DriftSince(n.Ref)
}

// fail records an error of a resource.
func (r *recorder) fail(ctx context.Context, n *graph.Node, t *model.Transaction, err error) {
	t.Failed, t.Noop = true, r.IsNoop(n)
	t.Errors = append(t.Errors, r.errorText(n, err))
	r.report.unrepaired(t, r.seen(n))
	var p *plan.PanicError
	if errors.As(err, &p) {
		r.opts.Env.Log.ErrorContext(ctx, "resource type panicked", "resource", n.Ref.String(), "panic", r.secrets.Redact(fmt.Sprint(p.Value)), "stack", string(p.Stack))
	}
	r.Results[n.At].Failed = true
	r.EndAfter(n)
}
