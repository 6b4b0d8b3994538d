package agent

import (
	"context"
	"encoding/json"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// Ensure accepts an ensure request as requests.Service.Ensure does.
func (a *Agent) Ensure(ctx context.Context, data []byte, respond func(model.EnsureResponse)) {
	a.requests.Ensure(ctx, data, respond)
}

// Command accepts a request that waited for the node as requests.Service.Command
// does.
func (a *Agent) Command(ctx context.Context, id string, data []byte) error {
	return a.requests.Command(ctx, id, data)
}

// Status reads the state of one resource as requests.Service.Status does.
func (a *Agent) Status(ctx context.Context, data []byte) (json.RawMessage, error) {
	return a.requests.Status(ctx, data)
}

func (a *Agent) requestOptions(dir string) requests.Options {
	return requests.Options{
		Node: a.opts.Config.Node, Host: a.opts.Host, Dir: dir, Loader: a.opts.Loader, Log: a.log,
		Facts: a.Facts, FactsNow: a.factsNow, Run: a.runner.runRequest, Report: a.reportEnsure, Wake: a.queue.slot.Notify,
		Inputs: func(facts model.Facts) manifest.Inputs {
			return manifest.Inputs{Facts: facts, MaxDepth: a.Config().MaxDepth}
		},
		Env: func(facts model.Facts) resource.Env {
			return resource.Env{Host: a.opts.Host, Facts: facts, Log: a.log, Scope: resource.Scope{Noop: true, Origin: a.origin(nil)}}
		},
	}
}

// runRequest makes the run of a request.
func (r *runner) runRequest(ctx, hard context.Context, q requests.Run) (*model.Run, error) {
	o := r.runOptions(ctx, hard, ksuid.New().String(), q.Noop)
	o.Manifest, o.Cause, o.CorrelationID, o.Full = "ensure", model.CauseEnsure, q.ID, true
	o.Secrets, o.Command = q.Secrets, "muster agent"
	o.OnTransaction = func(t *model.Transaction) {
		r.logTransaction(ctx, t)
		q.OnTransaction(t)
	}
	o.Locked = func(context.Context, *reconcile.Options) (*graph.Graph, error) {
		q.Began()
		return q.Graph, nil
	}
	summary, err := reconcile.Run(ctx, q.Graph, o)
	if summary != nil && !q.Noop && summary.Outcome() != model.OutcomeStable {
		r.changes++
	}

	return summary, err
}
