package engine

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// outputs stores the outputs of resources for later resources.
type outputs struct {
	access *access
	values resource.Outputs
}

// of returns the outputs of a node that ran. It returns nil if the state is unknown, because the
// observation after a failed or interrupted change failed.
func (o *outputs) of(n *graph.Node, outcome resource.Outcome) map[string]any {
	state := o.access.observer.state(n)
	if n.Resource.Type.Outputs == nil || state == nil {
		return nil
	}

	return n.Resource.Type.Outputs(o.access.observer.spec(n), state, outcome)
}

// keep stores the outputs of a node.
func (o *outputs) keep(n *graph.Node, outcome resource.Outcome) {
	if n.Resource.Type.Outputs == nil {
		return
	}
	values := o.access.secrets.outputs(o.of(n, outcome), o.access.isSensitive(n))
	o.values[n.Ref] = values
	if alias := n.Resource.Meta().Alias; alias != "" {
		o.values[model.Ref{Type: n.Ref.Type, Name: alias}] = values
	}
}
