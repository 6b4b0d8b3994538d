package requests

import (
	"context"

	"github.com/musterfleet/muster/model"
)

// maxRuns is how many manifests a response has: reports have the runs of all.
const maxRuns = 500

// RunRequest is an accepted run request, which its caller ends once.
type RunRequest struct {
	model.RunRequest
	service *Service
	request *request
}

// NextRun removes and returns the oldest run request that waits; nil where none waits.
func (s *Service) NextRun(ctx context.Context) *RunRequest {
	for q := s.queue.next(true); q != nil; q = s.queue.next(true) {
		asked, err := model.DecodeRunRequest(q.body)
		out := &RunRequest{asked, s, q}
		if err == nil {
			return out
		}
		out.End(ctx, nil, err) // its record was changed
	}

	return nil
}

// MayBegin returns why nothing may be run for it any more: it expired,
// was cancelled, or the node is paused.
func (r *RunRequest) MayBegin() error { return r.service.mayBegin(r.request, r.Expires, r.Noop) }

// Begin responds that it is being executed.
func (r *RunRequest) Begin(ctx context.Context) {
	response := r.service.responder.response(r.request)
	response.Phase = model.EnsureRunning
	r.service.responder.respond(ctx, r.request, response)
}

// End responds with what came of the manifests, by key, or why nothing was run.
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
