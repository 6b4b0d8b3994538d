package engine

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// Env returns what a type is handed for a node, or for many when n is nil.
func (r *run) Env(n *graph.Node) resource.Env {
	env := r.opts.Env
	env.Log = r.secrets.Log(env.Log)
	if n == nil {
		return env
	}
	env.Log = env.Log.With("resource", n.Ref.String())
	if n.Owner != nil {
		env.Log = env.Log.With("manifest", n.Owner.Ref.Name)
	}
	env.Scope = r.up.ScopeOf(n)
	env.Children = r.report.Counts[n.Ref]
	if r.IsNoop(n) {
		env.RunEnv = append(slices.Clone(env.RunEnv), EnvNoop+"=1")
	}

	return env
}

// IsNoop reports whether a node must not be changed.
func (r *run) IsNoop(n *graph.Node) bool { return r.up.IsNoop(n) }

// Rest returns the nodes after n that have not had their turns.
func (r *run) Rest(n *graph.Node) []*graph.Node {
	var out []*graph.Node
	for _, other := range r.up.Graph.Nodes()[n.At+1:] {
		if !r.up.Results[other.At].Done {
			out = append(out, other)
		}
	}

	return out
}

// ErrorText returns an error of a node as it may be shown.
func (r *run) ErrorText(n *graph.Node, err error) string {
	return r.secrets.Error(err, r.isSensitive(n))
}

// isSensitive reports whether nothing of a resource's values may be shown: neither
// as declared, nor with what its late properties came to.
func (r *run) isSensitive(n *graph.Node) bool {
	return n.Resource.Sensitive() || r.observer.Spec(n).Meta().Sensitive
}

// setEnsure notes the state a resource was found or left in, where it was observed.
func (r *run) setEnsure(n *graph.Node, t *model.Transaction) {
	if state := r.observer.State(n); state != nil {
		t.FinalEnsure = state.State().Ensure
	}
}

// keepOutputs keeps what later resources may take.
func (r *run) keepOutputs(n *graph.Node, outcome resource.Outcome) {
	if n.Resource.Type.Outputs == nil {
		return
	}
	values := n.Resource.Type.Outputs(r.observer.Spec(n), r.observer.State(n), outcome)
	values = r.secrets.Outputs(values, r.isSensitive(n))
	r.outputs[n.Ref] = values
	if alias := n.Resource.Meta().Alias; alias != "" {
		r.outputs[model.Ref{Type: n.Ref.Type, Name: alias}] = values
	}
}

// noteDrift counts a difference that nobody asked for, and its repair. A resource
// that includes a manifest differs by what that has, which is counted already.
func (r *run) noteDrift(n *graph.Node, repaired bool) {
	if !plan.IsUnasked(r.opts.Cause) || n.Resource.Type.Include != nil {
		return
	}
	r.report.Summary.Drift.Detected++
	if repaired {
		r.report.Summary.Drift.Repaired++
	}
}

// end ends the turn of a node. interrupted means that its health checks were.
func (r *run) end(n *graph.Node, t *model.Transaction, interrupted bool) {
	if p := r.observer.Provider(n); p != nil {
		t.Provider = p.Name()
	}
	if !r.isSensitive(n) {
		r.report.Describe(t, r.observer.Spec(n), r.observer.State(n))
	}
	r.up.End(n)
	r.register(n, t, interrupted)
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
	case r.IsNoop(n) || r.up.IgnoresDrift(n):
	case interrupted && !lost:
	case lost:
		r.opts.Register(n.Ref, nil)
	case !t.HealthCheckOnly:
		r.opts.Register(n.Ref, entries)
	}
}
