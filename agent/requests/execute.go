package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
)

// Runner makes a run. When ctx ends, the run starts no further change; when killCtx ends, the current
// change is aborted.
type Runner func(ctx, killCtx context.Context, r Run) (*model.Run, error)

// Next removes the oldest waiting ensure request and returns the function that executes it, nil if no
// request waits. Executions may overlap.
func (s *Service) Next() (execute func(ctx, killCtx context.Context, run Runner)) {
	q := s.queue.next(false)
	if q == nil {
		return nil
	}

	return func(ctx, killCtx context.Context, run Runner) { s.answer(ctx, killCtx, q, run) }
}

func (s *Service) answer(ctx, killCtx context.Context, q *request, run Runner) {
	response := s.responder.response(q)
	began := false
	soft, kill, end := s.queue.executing(ctx, killCtx, q)
	defer end()
	err := tasks.Guard(s.o.Log, "executing request "+q.ID, func() (err error) {
		response.State, err = s.execute(soft, kill, q, run, func() error {
			running := s.responder.response(q)
			running.Phase = model.EnsureRunning
			if !s.responder.respond(killCtx, q, running) {
				return s.queue.whyCancelled(q)
			}
			began = true
			return nil
		})
		return err
	})
	if err != nil && !began && ctx.Err() != nil {
		return // it stays acknowledged and is executed after the restart
	}
	response.Phase, response.Error = concluded(response.State, err)
	if why := s.queue.whyCancelled(q); why != nil && response.State != nil && response.State.NotRun {
		response.Phase, response.Error = model.EnsureCancelled, why.Error()
	}
	s.responder.respond(killCtx, q, response)
}

// errExpired ends a request that expired before its execution.
var errExpired = errors.New("the request expired")

// concluded returns the final phase of a request, and its error.
func concluded(state *model.Transaction, err error) (model.EnsurePhase, string) {
	var by cancelled
	switch {
	case errors.Is(err, errExpired):
		return model.EnsureExpired, err.Error()
	case errors.As(err, &by):
		return model.EnsureCancelled, by.Error()
	case err != nil:
		return model.EnsureFailed, err.Error()
	case !state.OK():
		return model.EnsureFailed, ""
	default:
		return model.EnsureDone, ""
	}
}

func (s *Service) execute(ctx, killCtx context.Context, q *request, run Runner, began func() error) (*model.Transaction, error) {
	req, properties, err := manifest.ParseRequest("request", q.body)
	if err != nil {
		return nil, err
	}
	mayBegin := func() error { return s.mayBegin(q, req.Expires, observes(req)) }
	if err := mayBegin(); err != nil {
		return nil, err
	}
	resolved, err := s.o.Loader.ResolveOne(ctx, req.Type, properties, s.o.Inputs(s.o.FactsNow()))
	if err != nil {
		return nil, err
	}
	own := resolved.Resources[len(resolved.Resources)-1]
	own.Pos = model.Position{File: own.Pos.File} // lines would refer to our copy, not to the sender's document
	built, err := plan.Build(resolved.Resources, nil)
	if err != nil {
		return nil, err
	}
	var result *model.Transaction
	summary, err := run(ctx, killCtx, Run{
		ID: q.ID, Graph: built, Noop: req.Noop, Check: req.Check, Secrets: resolved.Secrets, MayBegin: mayBegin, Began: began,
		OnTransaction: func(t *model.Transaction) {
			if t.Ref() == own.Ref() {
				result = t
			}
		},
	})
	if err == nil && result == nil {
		err = fmt.Errorf("no resource ran: %v", summary.Errors)
	}

	return result, err
}

func (s *Service) mayBegin(q *request, expires time.Time, observes bool) error {
	if why := s.queue.whyCancelled(q); why != nil {
		return why
	}
	if !expires.IsZero() {
		if why := s.o.Expired(expires); why != nil {
			return fmt.Errorf("%w: %w", errExpired, why)
		}
	}

	return s.paused(observes)
}

// Status reads the state of one resource, given as an ensure request, and changes nothing. The request is never signed.
// So where signatures are required, Status refuses a resource that includes a manifest, and properties besides the name:
// the state must depend neither on commands nor on files that the sender chooses.
func (s *Service) Status(ctx context.Context, data []byte) (json.RawMessage, error) {
	req, properties, err := manifest.ParseRequest("request", data)
	if err != nil {
		return nil, err
	}
	demands := s.o.Demands()
	if demands {
		if err := onlyName(properties); err != nil {
			return nil, err
		}
	}
	facts, err := s.o.Facts(ctx)
	if err != nil {
		return nil, err
	}
	in := s.o.Inputs(facts)
	in.ObserveOnly, in.NoIncludes = true, demands
	resolved, err := s.o.Loader.ResolveOne(ctx, req.Type, properties, in)
	if err != nil {
		return nil, err
	}
	found, err := engine.Status(ctx, s.o.Env(facts), resolved.Resources)
	if err != nil {
		return nil, err
	}

	return json.Marshal(found)
}

// onlyName returns problems for the properties besides the name.
func onlyName(properties document.Value) error {
	var out model.Problems
	for _, e := range properties.Entries {
		if e.Key != "name" {
			out.Add(e.Pos, "remove it", "a status request is not signed, so it may have only the name, not `%s`", e.Key)
		}
	}

	return out.Err()
}

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

// queue holds the waiting requests, oldest first, and cancels the execution of the others.
type queue struct {
	// wake is called when a request is ready. It must not block.
	wake func()

	mu      sync.Mutex
	waiting []*request
}

func (w *queue) add(q *request) {
	w.mu.Lock()
	w.waiting = append(w.waiting, q)
	w.mu.Unlock()
	w.wake()
}

// next removes and returns the oldest waiting run request or ensure request, nil if none waiting.
func (w *queue) next(run bool) *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.waiting, func(q *request) bool { return q.Run == run })
	if i < 0 {
		return nil
	}
	q := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)

	return q
}

// stop cancels a request: it starts no further change. A cancel with Kill also aborts the current
// change.
func (w *queue) stop(q *request, why cancelled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(waiting *request) bool { return waiting == q })
	if q.cancelled == nil {
		q.cancelled = why
	}
	if q.stop != nil {
		q.stop(why)
	}
	if q.kill != nil && why.Kill {
		q.kill(why)
	}
}

// executing returns the contexts of an execution; a cancel of the request ends them. end releases
// them.
func (w *queue) executing(ctx, killCtx context.Context, q *request) (soft, killed context.Context, end func()) {
	soft, stop := context.WithCancelCause(ctx)
	killed, kill := context.WithCancelCause(killCtx)
	w.mu.Lock()
	q.stop, q.kill = stop, kill
	why := q.cancelled
	w.mu.Unlock()
	if why != nil {
		stop(why)
	}

	return soft, killed, func() {
		w.mu.Lock()
		q.stop, q.kill = nil, nil
		w.mu.Unlock()
		stop(nil)
		kill(nil)
	}
}

func (w *queue) whyCancelled(q *request) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	return q.cancelled
}
