package requests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
)

// cancelled is the reason why a request is not executed any more.
type cancelled struct{ model.CancelRequest }

func (c cancelled) Error() string { return c.String() }

// errCancelExpired rejects a cancel that arrived too late.
var errCancelExpired = errors.New("the cancel expired")

// errCancelNotRecorded rejects a cancel that would be lost in a restart.
var errCancelNotRecorded = errors.New("the cancel cannot be stored, and the request could be executed after a restart")

// isCancel reports whether a message is a cancel. For an envelope, the signed action decides.
func isCancel(data []byte) bool {
	if !signed.IsEnvelope(data) {
		return model.IsCancelRequest(data)
	}
	e, err := signed.Open(data)

	return err == nil && e.Statement.Action == signed.Cancel
}

// cancel accepts a cancel, and calls respond with the latest and the later responses to the named
// request. The response to a rejected cancel has an error and no phase: a phase describes the request.
func (s *Service) cancel(ctx context.Context, data []byte, isCommand bool, respond func(model.EnsureResponse)) error {
	var parsed model.CancelRequest
	err := tasks.Guard(s.o.Log, "accepting a cancel", func() (err error) {
		if parsed, err = s.openCancel(ctx, data); err == nil {
			err = s.apply(ctx, cancelled{parsed}, isCommand, respond)
		}
		return err
	})
	if err == nil {
		return nil
	}
	s.rejected.Log(ctx, s.o.Log, slog.LevelWarn, "cancel rejected", "id", parsed.Request, "error", err)
	response := s.responder.response(&request{ID: parsed.Request})
	response.Error = err.Error()
	respond(response)

	return err
}

// openCancel decodes the cancel of a message, which may be signed. With an error it returns the part
// that it could decode.
func (s *Service) openCancel(ctx context.Context, data []byte) (model.CancelRequest, error) {
	opened, err := s.o.Open(ctx, data, signed.Cancel)
	parsed, invalid := model.DecodeCancelRequest(opened.Request)
	if err == nil {
		err = opened.Stale
	}
	switch {
	case err != nil:
		s.o.Untrusted(err.Error())
		return parsed, err
	case invalid != nil:
		return parsed, invalid
	}
	if why := s.o.Expired(parsed.Expires); why != nil {
		return parsed, fmt.Errorf("%w: %w", errCancelExpired, why)
	}

	return parsed, nil
}

// apply cancels a request that has not begun, stops a request during its execution, and remembers the
// id of an unknown request.
func (s *Service) apply(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	// Otherwise the request could be accepted between the check and the record.
	s.accepting.Lock()
	defer s.accepting.Unlock()
	q, waiting, err := s.store.cancel(ctx, &request{ID: why.Request}, why.Error(), respond)
	if run := (&request{ID: why.Request, Run: true}); err == nil && q == nil && s.store.knows(run) {
		// The id names a run request, but an ensure request with the same id may arrive later: cancel
		// both.
		if _, err = s.early.add(ctx, why.Request, why.Error()); err == nil {
			q, waiting, err = s.store.cancel(ctx, run, why.Error(), respond)
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	case q == nil:
		return s.applyUnknown(ctx, why, isCommand, respond)
	}
	s.queue.stop(q, why)
	if len(waiting) > 0 {
		s.o.Log.InfoContext(ctx, "request cancelled", "id", q.ID, "by", why.By)
		s.responder.concluded(s.responder.cancelled(q, why.Error()), waiting)
	}
	s.queue.wake()

	return nil
}

// applyUnknown remembers a cancel that arrived before its request. A cancel from the stream replaced
// its request there, so its response is the result of the request.
func (s *Service) applyUnknown(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	isNew, err := s.early.add(ctx, why.Request, why.Error())
	if err != nil {
		return fmt.Errorf("%w: %w", errCancelNotRecorded, err)
	}
	response := s.responder.cancelled(&request{ID: why.Request}, why.Error())
	if isNew && isCommand {
		s.o.Report(response)
	}
	response.Unknown = true
	respond(response)

	return nil
}

// record stores a request. It reports whether the request is new and whether it was cancelled before
// it arrived. A cancelled request gets its final response at once.
func (s *Service) record(ctx context.Context, q *request, respond func(model.EnsureResponse)) (isNew, isCancelled bool, err error) {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	why, isCancelled := s.early.of(q.ID)
	if isCancelled {
		q.Response = s.responder.cancelled(q, why)
	}
	if isNew, err = s.store.accept(ctx, q, respond); isNew && isCancelled {
		s.responder.concluded(q.Response, nil)
	}

	return isNew, isCancelled, err
}

// maxCancels limits the remembered cancels of unknown requests. They are stored apart from the
// requests: a flood of cancels must not displace executed requests, which could be delivered again.
const maxCancels = 1000

type earlyCancel struct {
	// Sum is the checksum of the request id.
	Sum string    `json:"sum"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// earlyCancels stores the cancels that arrived before their requests.
type earlyCancels struct {
	host *host.Host
	path string

	mu sync.Mutex
	// all holds the cancels of the last day, oldest first.
	all []earlyCancel
}

func openEarlyCancels(h *host.Host, dir string, log *slog.Logger) *earlyCancels {
	c := &earlyCancels{host: h, path: filepath.Join(dir, "cancels")}
	var err error
	if c.all, err = host.ReadRecord[[]earlyCancel](c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot read cancels of requests that have not arrived", "error", err)
	}

	return c
}

// of returns why the request with this id was cancelled, and whether it was.
func (c *earlyCancels) of(id string) (why string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(e earlyCancel) bool { return e.Sum == fileName(id) })
	if i < 0 {
		return "", false
	}

	return c.all[i].Why, true
}

// refreshAfter is the age at which a repeated cancel is stored again. Repeats before that are not
// written: a sender may repeat a cancel any number of times.
const refreshAfter = time.Hour

// add stores a cancel and reports whether it is new. With an error, the cancel is not remembered.
func (c *earlyCancels) add(ctx context.Context, id, why string) (isNew bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, sum := time.Now().UTC(), fileName(id)
	if slices.ContainsFunc(c.all, func(e earlyCancel) bool { return e.Sum == sum && now.Sub(e.At).Abs() < refreshAfter }) {
		return false, nil
	}
	all := slices.DeleteFunc(slices.Clone(c.all), func(e earlyCancel) bool {
		isNew = isNew || e.Sum == sum
		return e.Sum == sum || now.Sub(e.At) > keepFor
	})
	isNew = !isNew
	all = append(all, earlyCancel{sum, why, now})
	all = all[max(len(all)-maxCancels, 0):]
	if err := c.host.WriteRecord(ctx, c.path, all); err != nil {
		return false, err
	}
	c.all = all

	return isNew, nil
}
