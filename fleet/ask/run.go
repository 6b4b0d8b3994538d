package ask

import (
	"context"
	"strings"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/model"
)

// run requests runs of assigned manifests.
func (e *execution) run(ctx context.Context) error {
	r := e.record
	id := RequestID(r.By)
	e.registry.change(func() { r.Request = id })
	asked := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: id, Manifests: r.Manifests, Noop: r.Noop, Expires: e.Now().Add(r.Within).UTC()}
	limit, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	from := model.Sender{By: r.By, Nodes: len(e.nodes), To: fleet.JoinTargets(r.Target.families()), On: r.Target.On}
	result, err := e.Backend.Run(limit, from, e.nodes, asked, func(a model.EnsureResponse) { e.set(resultOf(a)) })
	if result != nil {
		e.conclude(ctx, result)
	}

	return err
}

// conclude records the result of each node.
func (e *execution) conclude(ctx context.Context, r *Ensured) {
	for _, a := range r.Answers {
		e.set(resultOf(a))
		if strings.Contains(a.Error, "not signed") {
			e.note(unsignedNote)
		}
	}
	for _, node := range r.Missing {
		e.set(silent(ctx, node))
	}
}

// silent returns the result of a node that has not answered. If the action was ended early, the node is pending.
func silent(ctx context.Context, node string) Result {
	if ctx.Err() != nil {
		return Result{Node: node, State: StatePending, Text: "no answer before the action ended"}
	}

	return Result{Node: node, State: StateUnreachable, Text: "has not answered"}
}

// RequestID returns a new id of a request. It names the user, because reports contain it.
func RequestID(by string) string { return ksuid.New().String() + " by " + by }
