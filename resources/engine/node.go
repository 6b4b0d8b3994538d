package engine

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// end ends the turn of a node. interrupted means that its health checks were.
func (r *run) end(n *graph.Node, t *model.Transaction, interrupted bool) {
	if p := r.observer.Provider(n); p != nil {
		t.Provider = p.Name()
	}
	if !r.isSensitive(n) {
		r.report.Describe(t, r.observer.Spec(n), r.observer.State(n))
		t.Properties, t.Status = r.secrets.Document(t.Properties), r.secrets.Document(t.Status)
	}
	if state := r.observer.State(n); r.opts.Left != nil && state != nil {
		r.opts.Left(n.Ref, state)
	}
	r.End(n)
	r.register(n, t, interrupted)
	if r.isLate(n.Ref) {
		r.report.Hold(n, t)
		return
	}
	r.report.End(n, t)
}

// register hands on what a resource registers after its turn. A run that only
// makes health checks registers nothing, but ends the registrations of what is
// critical.
func (r *run) register(n *graph.Node, t *model.Transaction, interrupted bool) {
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
