package requests

import (
	"context"

	"github.com/musterfleet/muster/model"
)

// maxRuns limits the manifests in a response; reports contain all of them.
const maxRuns = 500

// RunRequest is an accepted run request. The caller must call End once.
type RunRequest struct {
	model.RunRequest
	service *Service
	request *request
}

// NextRun removes and returns the oldest waiting run request, nil if none waits.
func (s *Service) NextRun(ctx context.Context) *RunRequest {
	for q := s.queue.next(true); q != nil; q = s.queue.next(true) {
		decoded, err := model.DecodeRunRequest(q.body)
		out := &RunRequest{decoded, s, q}
		if err == nil {
			return out
		}
		out.End(ctx, nil, err) // the stored record was modified
	}

	return nil
}

// MayBegin returns an error if the request expired or was cancelled, or if the node is paused.
func (r *RunRequest) MayBegin() error { return r.service.mayBegin(r.request, r.Expires, r.Noop) }

// Begin responds that the request is being executed.
func (r *RunRequest) Begin(ctx context.Context) {
	response := r.service.responder.response(r.request)
	response.Phase = model.EnsureRunning
	r.service.responder.respond(ctx, r.request, response)
}

// End sends the final response: the results of the manifests by key, or err if no manifest ran.
func (r *RunRequest) End(ctx context.Context, runs []model.RequestedRun, err error) {
	response := r.service.responder.response(r.request)
	response.Runs = runs[:min(len(runs), maxRuns)]
	switch {
	case err != nil:
		response.Phase, response.Error = concluded(nil, err)
	case model.OutcomeOf(runs).IsFailure():
		response.Phase = model.EnsureFailed
	default:
		response.Phase = model.EnsureDone
	}
	r.service.responder.respond(ctx, r.request, response)
}
