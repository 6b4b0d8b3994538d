package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/manifest"
)

// Runner makes a run; ctx ends when it must not begin, hard when it is broken off.
type Runner func(ctx, hard context.Context, r Run) (*model.Run, error)

// Next removes the oldest request that waits, and returns what executes it; nil where none
// waits. It may be called beside the execution of others.
func (s *Service) Next() (execute func(ctx, hard context.Context, run Runner)) {
	q := s.queue.next(false)
	if q == nil {
		return nil
	}

	return func(ctx, hard context.Context, run Runner) { s.answer(ctx, hard, q, run) }
}

// answer executes a request, and responds.
func (s *Service) answer(ctx, hard context.Context, q *request, run Runner) {
	response := s.responder.response(q)
	began := false
	soft, broken, end := s.queue.executing(ctx, hard, q)
	defer end()
	err := tasks.Guard(s.o.Log, "executing request "+q.ID, func() (err error) {
		response.State, err = s.execute(soft, broken, q, run, func() error {
			running := s.responder.response(q)
			running.Phase = model.EnsureRunning
			if !s.responder.respond(hard, q, running) {
				return s.queue.whyCancelled(q)
			}
			began = true
			return nil
		})
		return err
	})
	if err != nil && !began && ctx.Err() != nil {
		return // it stays acknowledged, and is executed after the restart
	}
	response.Phase, response.Error = concluded(response.State, err)
	if why := s.queue.whyCancelled(q); why != nil && response.State != nil && response.State.NotRun {
		response.Phase, response.Error = model.EnsureCancelled, why.Error()
	}
	s.responder.respond(hard, q, response)
}

// errExpired is a request that came to its turn too late.
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

// execute runs the one resource of a request, and returns its transaction.
func (s *Service) execute(ctx, hard context.Context, q *request, run Runner, began func() error) (*model.Transaction, error) {
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
	own.Pos = model.Position{File: own.Pos.File} // the lines are not those of the sender's document
	built, err := graph.Build(resolved.Resources, nil)
	if err != nil {
		return nil, err
	}
	var result *model.Transaction
	summary, err := run(ctx, hard, Run{
		ID: q.ID, Graph: built, Noop: req.Noop, Check: req.Check, Secrets: resolved.Secrets, MayBegin: mayBegin, Began: began,
		OnTransaction: func(t *model.Transaction) {
			if t.Ref() == own.Ref() {
				result = t
			}
		},
	})
	if err == nil && result == nil {
		err = fmt.Errorf("nothing was run: %v", summary.Errors)
	}

	return result, err
}

// mayBegin returns why a request must not be executed any more.
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

// Status reads the state of one resource, named as in an ensure request, and
// changes nothing.
func (s *Service) Status(ctx context.Context, data []byte) (json.RawMessage, error) {
	req, properties, err := manifest.ParseRequest("request", data)
	if err != nil {
		return nil, err
	}
	facts, err := s.o.Facts(ctx)
	if err != nil {
		return nil, err
	}
	in := s.o.Inputs(facts)
	in.ObserveOnly = true
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
