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

// recorder records what came of resources: in their transactions, and for whom Options name.
type recorder struct {
	*access

	opts      Options
	refreshes *pendingRefreshes
	deferred  []deferredChange
}

// end ends the turn of a node. interrupted means that its health checks were.
func (r *recorder) end(n *graph.Node, t *model.Transaction, interrupted bool) {
	if p := r.observer.Provider(n); p != nil {
		t.Provider = p.Name()
	}
	if !r.isSensitive(n) {
		r.report.Describe(t, r.observer.Spec(n), r.observer.State(n))
		t.Properties, t.Status = r.secrets.Document(t.Properties), r.secrets.Document(t.Status)
	}
	if state := r.observer.State(n); r.opts.RecordOwnState != nil && state != nil {
		r.opts.RecordOwnState(n.Ref, state)
	}
	r.End(n)
	if l := r.deferredOf(n.Ref); l != nil {
		l.interrupted = interrupted
		r.report.Hold(n, t)
		return
	}
	r.register(n, t, interrupted)
	r.report.End(n, t)
}

// register hands on what a resource registers after its turn. A run that only
// makes health checks registers nothing, but ends the registrations of what is
// critical.
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

// repaired counts and describes the repair of drift that a change was, unless nobody noticed any.
func (r *recorder) repaired(n *graph.Node, t *model.Transaction, p resource.Plan, made time.Time) {
	if !t.Changed {
		return
	}
	r.report.NoteDrift(n, p, true)
	seen := r.seen(n)
	if seen.IsZero() {
		seen = r.opts.Woken
	}
	r.report.Repaired(t, p, seen, made)
}

// seen returns when drift of a resource was first noticed; zero is not known.
func (r *recorder) seen(n *graph.Node) time.Time {
	if r.opts.DriftSince == nil {
		return time.Time{}
	}

	return r.opts.DriftSince(n.Ref)
}

// fail records an error of a resource.
func (r *recorder) fail(ctx context.Context, n *graph.Node, t *model.Transaction, err error) {
	t.Failed, t.Noop = true, r.IsNoop(n)
	t.Errors = append(t.Errors, r.ErrorText(n, err))
	r.report.Unrepaired(t, r.seen(n))
	var p *plan.PanicError
	if errors.As(err, &p) {
		r.opts.Env.Log.ErrorContext(ctx, "resource type panicked", "resource", n.Ref.String(), "panic", r.secrets.Redact(fmt.Sprint(p.Value)), "stack", string(p.Stack))
	}
	r.Results[n.At].Failed = true
	r.EndAfter(n)
}
