package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/model/telemetry"
)

// cancelled is why a request is not executed any more.
type cancelled struct{ model.CancelRequest }

func (c cancelled) Error() string { return c.String() }

// errCancelExpired is a cancel that came too late.
var errCancelExpired = errors.New("the cancel expired")

// errCancelNotRecorded is a cancel that a restart could forget.
var errCancelNotRecorded = errors.New("the cancel cannot be recorded, without which the request could be executed after a restart")

// isCancel reports whether a message asks to cancel a request: what is signed is taken for what
// it was signed for.
func isCancel(data []byte) bool {
	if !signed.IsEnvelope(data) {
		return model.IsCancelRequest(data)
	}
	e, err := signed.Open(data)

	return err == nil && e.Statement.Action == signed.Cancel
}

// canceller accepts cancels of requests.
type canceller struct {
	open      func(ctx context.Context, data []byte, action signed.Action) (Opened, error)
	untrusted func(why string)
	expired   func(at time.Time) error
	report    func(model.EnsureResponse)
	log       *slog.Logger
	rejected  *telemetry.RateLimitedLog

	store     *store
	early     *earlyCancels
	queue     *queue
	responder *responder
	// accepting keeps a request from being accepted while a cancel of it is.
	accepting sync.Mutex
}

// cancel accepts a cancel, and calls respond with the last response to the request that it
// names, and those still to come. Of a rejected cancel the response has an error and no phase: a
// phase is that of the request.
func (c *canceller) cancel(ctx context.Context, data []byte, isCommand bool, respond func(model.EnsureResponse)) error {
	var asked model.CancelRequest
	err := tasks.Guard(c.log, "accepting a cancel", func() (err error) {
		if asked, err = c.openCancel(ctx, data); err == nil {
			err = c.apply(ctx, cancelled{asked}, isCommand, respond)
		}
		return err
	})
	if err == nil {
		return nil
	}
	c.rejected.Log(ctx, c.log, slog.LevelWarn, "cancel rejected", "id", asked.Request, "error", err)
	response := c.responder.response(&request{ID: asked.Request})
	response.Error = err.Error()
	respond(response)

	return err
}

// openCancel returns the cancel of a message, which may be signed; what could be decoded is
// returned with the error.
func (c *canceller) openCancel(ctx context.Context, data []byte) (model.CancelRequest, error) {
	opened, err := c.open(ctx, data, signed.Cancel)
	asked, invalid := model.DecodeCancelRequest(opened.Request)
	if err == nil {
		err = opened.Stale
	}
	switch {
	case err != nil:
		c.untrusted(err.Error())
		return asked, err
	case invalid != nil:
		return asked, invalid
	}
	if why := c.expired(asked.Expires); why != nil {
		return asked, fmt.Errorf("%w: %w", errCancelExpired, why)
	}

	return asked, nil
}

// apply cancels a request that has not begun, has one that is being executed begin nothing more,
// and remembers the id of one that is not known.
func (c *canceller) apply(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	// Or the request could be accepted between.
	c.accepting.Lock()
	defer c.accepting.Unlock()
	q, waiting, err := c.store.cancel(ctx, &request{ID: why.Request}, why.Error(), respond)
	if run := (&request{ID: why.Request, Run: true}); err == nil && q == nil && c.store.knows(run) {
		// Whoever ran what is assigned by that id may not know of the request that is to come.
		if _, err = c.early.add(ctx, why.Request, why.Error()); err == nil {
			q, waiting, err = c.store.cancel(ctx, run, why.Error(), respond)
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	case q == nil:
		return c.applyUnknown(ctx, why, isCommand, respond)
	}
	c.queue.stop(q, why)
	if len(waiting) > 0 {
		c.log.InfoContext(ctx, "request cancelled", "id", q.ID, "by", why.By)
		c.responder.concluded(c.responder.cancelled(q, why.Error()), waiting)
	}
	c.queue.wake()

	return nil
}

// applyUnknown remembers a cancel that came before its request. One that waited in the stream
// stands where the request was, so it is the result of that.
func (c *canceller) applyUnknown(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	isNew, err := c.early.add(ctx, why.Request, why.Error())
	if err != nil {
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	}
	response := c.responder.cancelled(&request{ID: why.Request}, why.Error())
	if isNew && isCommand {
		c.report(response)
	}
	response.Unknown = true
	respond(response)

	return nil
}

// accept accepts a request, and reports whether it is new, and whether it was cancelled before it
// came: then it has its final response by that.
func (c *canceller) accept(ctx context.Context, q *request, respond func(model.EnsureResponse)) (isNew, isCancelled bool, err error) {
	c.accepting.Lock()
	defer c.accepting.Unlock()
	why, isCancelled := c.early.of(q.ID)
	if isCancelled {
		q.Response = c.responder.cancelled(q, why)
	}
	if isNew, err = c.store.accept(ctx, q, respond); isNew && isCancelled {
		c.responder.concluded(q.Response, nil)
	}

	return isNew, isCancelled, err
}
