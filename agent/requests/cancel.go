package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
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

// cancel accepts a cancel, and calls respond with the last response to the request that it
// names, and those still to come. Of a rejected cancel the response has an error and no phase: a
// phase is that of the request.
func (s *Service) cancel(ctx context.Context, data []byte, isCommand bool, respond func(model.EnsureResponse)) error {
	var c model.CancelRequest
	err := tasks.Guard(s.o.Log, "accepting a cancel", func() (err error) {
		if c, err = s.openCancel(ctx, data); err == nil {
			err = s.apply(ctx, cancelled{c}, isCommand, respond)
		}
		return err
	})
	if err == nil {
		return nil
	}
	s.rejected.Log(ctx, s.o.Log, slog.LevelWarn, "cancel rejected", "id", c.Request, "error", err)
	response := s.response(&request{ID: c.Request})
	response.Error = err.Error()
	respond(response)

	return err
}

// openCancel returns the cancel of a message, which may be signed; what could be decoded is
// returned with the error.
func (s *Service) openCancel(ctx context.Context, data []byte) (model.CancelRequest, error) {
	opened, err := s.o.Open(ctx, data, signed.Cancel)
	c, invalid := model.DecodeCancelRequest(opened.Request)
	if err == nil {
		err = opened.Stale
	}
	switch {
	case err != nil:
		s.o.Untrusted(err.Error())
		return c, err
	case invalid != nil:
		return c, invalid
	case s.o.Expired(c.Expires):
		return c, errCancelExpired
	default:
		return c, nil
	}
}

// apply cancels a request that has not begun, has one that is being executed begin nothing more,
// and remembers the id of one that is not known.
func (s *Service) apply(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	// Or the request could be accepted between.
	s.accepting.Lock()
	defer s.accepting.Unlock()
	q, waiting, err := s.store.cancel(ctx, why.Request, why.Error(), respond)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	case q == nil:
		return s.applyUnknown(ctx, why, isCommand, respond)
	}
	s.stop(q, why)
	if len(waiting) > 0 {
		s.o.Log.InfoContext(ctx, "request cancelled", "id", q.ID, "by", why.By)
		s.concluded(s.cancelledResponse(q, why.Error()), waiting)
	}
	s.o.Wake()

	return nil
}

// applyUnknown remembers a cancel that came before its request. One that waited in the stream
// stands where the request was, so it is the result of that.
func (s *Service) applyUnknown(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	isNew, err := s.cancels.add(ctx, why.Request, why.Error())
	if err != nil {
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	}
	response := s.cancelledResponse(&request{ID: why.Request}, why.Error())
	if isNew && isCommand {
		s.o.Report(response)
	}
	respond(response)

	return nil
}

// cancelledResponse returns the response to a request that was cancelled.
func (s *Service) cancelledResponse(q *request, why string) model.EnsureResponse {
	out := s.response(q)
	out.Phase, out.Error = model.EnsureCancelled, why

	return out
}

// stop has a request begin nothing more, and with a kill its change in hand broken off.
func (s *Service) stop(q *request, why cancelled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *request) bool { return w == q })
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

// executing returns the contexts in which a request is executed: what cancels it ends them.
func (s *Service) executing(ctx, hard context.Context, q *request) (soft, broken context.Context, end func()) {
	soft, stop := context.WithCancelCause(ctx)
	broken, kill := context.WithCancelCause(hard)
	s.mu.Lock()
	q.stop, q.kill = stop, kill
	why := q.cancelled
	s.mu.Unlock()
	if why != nil {
		stop(why)
	}

	return soft, broken, func() {
		s.mu.Lock()
		q.stop, q.kill = nil, nil
		s.mu.Unlock()
		stop(nil)
		kill(nil)
	}
}

// whyCancelled returns why a request is not executed any more, nil where it is.
func (s *Service) whyCancelled(q *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return q.cancelled
}
