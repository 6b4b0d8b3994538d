package requests

import (
	"context"
	"log/slog"

	"github.com/musterfleet/muster/model"
)

// responder sends responses to the waiting senders and reports the final ones.
type responder struct {
	node   string
	store  *store
	report func(model.EnsureResponse)
	ended  endings
	log    *slog.Logger
}

// response returns a response to a request, without a phase.
func (r *responder) response(q *request) model.EnsureResponse {
	out := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: r.node, ID: q.ID, Sender: q.Sender}
	if q.Run {
		out.Protocol = model.ProtocolRunResponse
	}

	return out
}

// cancelled returns the response to a request that was cancelled.
func (r *responder) cancelled(q *request, why string) model.EnsureResponse {
	out := r.response(q)
	out.Phase, out.Error = model.EnsureCancelled, why

	return out
}

// reject counts a rejected request and returns the response to it. It reports the response if it has
// an id.
func (r *responder) reject(response model.EnsureResponse, err error) model.EnsureResponse {
	response = r.refused(response, err)
	if response.ID != "" {
		r.report(response)
	}

	return response
}

// refused counts a rejected request and returns the response to it.
func (r *responder) refused(response model.EnsureResponse, err error) model.EnsureResponse {
	r.ended.rejected.Add(1)
	response.Phase, response.Error = model.EnsureFailed, err.Error()

	return response
}

// respond records a response and sends it to the waiting senders. It also reports a final response. It
// returns false if the request already has a final response.
func (r *responder) respond(ctx context.Context, q *request, response model.EnsureResponse) bool {
	waiting, ok, err := r.store.record(ctx, q, response)
	if err != nil {
		r.log.ErrorContext(ctx, "cannot record response", "id", q.ID, "error", err)
	}
	switch {
	case !ok:
	case response.Phase.Final():
		r.concluded(response, waiting)
	default:
		send(response, waiting)
	}

	return ok
}

// concluded counts and reports a final response, and sends it to the waiting senders.
func (r *responder) concluded(response model.EnsureResponse, waiting []func(model.EnsureResponse)) {
	r.ended.count(response.Phase)
	r.report(response)
	send(response, waiting)
}

// send calls all receivers with a response.
func send(response model.EnsureResponse, waiting []func(model.EnsureResponse)) {
	for _, respond := range waiting {
		respond(response)
	}
}
