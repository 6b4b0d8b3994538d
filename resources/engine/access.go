package engine

import (
	"os"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// access is the state of a run that its parts share: the decisions, the environment for the
// types, the observations, the report and the secrets.
type access struct {
	*plan.Upstream

	env      resource.Env
	report   *runReport
	secrets  *secretSet
	observer *observer
}

// Env returns the environment for the type of a node. n is nil for a call about many nodes.
func (a *access) Env(n *graph.Node) resource.Env {
	env := a.env
	env.Log = a.secrets.log(env.Log)
	if n == nil {
		return env
	}
	env.Log = env.Log.With("resource", n.Ref.String())
	if n.Owner != nil {
		env.Log = env.Log.With("manifest", n.Owner.Ref.Name)
	}
	env.Scope = a.ScopeOf(n)
	env.Children = a.report.counts[n.Ref]
	if a.IsNoop(n) {
		env.RunEnv = append(slices.Clone(env.RunEnv), EnvNoop+"=1")
	}

	return env
}

// rest returns the nodes after n that are not done.
func (a *access) rest(n *graph.Node) []*graph.Node {
	var out []*graph.Node
	for _, other := range a.Graph.Nodes()[n.At+1:] {
		if !a.Results[other.At].Done {
			out = append(out, other)
		}
	}

	return out
}

// errorText returns the redacted text of an error of a node, with its remedy.
func (a *access) errorText(n *graph.Node, err error) string {
	text := a.secrets.Error(err, a.isSensitive(n))
	if do := remedy(err, os.Geteuid()); do != "" {
		text += " (" + do + ")"
	}

	return text
}

// changes returns the redacted changes of a plan.
func (a *access) changes(n *graph.Node, due resource.Plan) []model.Change {
	return a.secrets.changes(due, a.isSensitive(n))
}

// isSensitive reports whether all values of a resource are secret, as declared or after its
// deferred properties are resolved.
func (a *access) isSensitive(n *graph.Node) bool {
	return n.Resource.Sensitive() || a.observer.spec(n).Meta().Sensitive
}
