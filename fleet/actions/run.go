package actions

import (
	"context"
	"strings"

	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/model"
)

// run has nodes run what is assigned to them.
func (d *Desk) run(ctx context.Context, e *entry, nodes []model.Node) error {
	id := RequestID(e.By)
	d.change(e, func() { e.Request = id })
	asked := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: id, Manifests: e.Manifests, Noop: e.Noop, Expires: d.o.Now().Add(e.Within).UTC()}
	limit, cancel := context.WithTimeout(ctx, e.Within)
	defer cancel()
	result, err := d.o.Doer.Run(limit, nodes, asked, func(r model.EnsureResponse) { d.set(e, resultOf(r)) })
	if result != nil {
		d.conclude(e, result)
	}

	return asEnded(ctx, err)
}

// conclude notes what came of a request on every node.
func (d *Desk) conclude(e *entry, r *request.Ensured) {
	for _, a := range r.Answers {
		d.set(e, resultOf(a))
		if strings.Contains(a.Error, "not signed") {
			d.note(e, unsignedNote)
		}
	}
	for _, node := range r.Missing {
		d.set(e, Result{Node: node, State: request.StateUnreachable, Text: "has not answered"})
	}
}
