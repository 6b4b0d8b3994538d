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

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/model/telemetry"
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

// canceller accepts cancels of requests.
type canceller struct {
	open      func(ctx context.Context, data []byte, action signed.Action) (desired.Opened, error)
	untrusted func(why string)
	expired   func(at time.Time) error
	report    func(model.EnsureResponse)
	log       *slog.Logger
	rejected  *telemetry.RateLimitedLog

	store     *store
	early     *earlyCancels
	queue     *queue
	responder *responder
	// accepting prevents a request from being accepted while its cancel is accepted.
	accepting sync.Mutex
}

// cancel accepts a cancel, and calls respond with the latest and the later responses to the named
// request. The response to a rejected cancel has an error and no phase: a phase describes the request.
func (c *canceller) cancel(ctx context.Context, data []byte, isCommand bool, respond func(model.EnsureResponse)) error {
	var parsed model.CancelRequest
	err := tasks.Guard(c.log, "accepting a cancel", func() (err error) {
		if parsed, err = c.openCancel(ctx, data); err == nil {
			err = c.apply(ctx, cancelled{parsed}, isCommand, respond)
		}
		return err
	})
	if err == nil {
		return nil
	}
	c.rejected.Log(ctx, c.log, slog.LevelWarn, "cancel rejected", "id", parsed.Request, "error", err)
	response := c.responder.response(&request{ID: parsed.Request})
	response.Error = err.Error()
	respond(response)

	return err
}

// openCancel decodes the cancel of a message, which may be signed. With an error it returns the part
// that it could decode.
func (c *canceller) openCancel(ctx context.Context, data []byte) (model.CancelRequest, error) {
	opened, err := c.open(ctx, data, signed.Cancel)
	parsed, invalid := model.DecodeCancelRequest(opened.Request)
	if err == nil {
		err = opened.Stale
	}
	switch {
	case err != nil:
		c.untrusted(err.Error())
		return parsed, err
	case invalid != nil:
		return parsed, invalid
	}
	if why := c.expired(parsed.Expires); why != nil {
		return parsed, fmt.Errorf("%w: %w", errCancelExpired, why)
	}

	return parsed, nil
}

// apply cancels a request that has not begun, stops a request during its execution, and remembers the
// id of an unknown request.
func (c *canceller) apply(ctx context.Context, why cancelled, isCommand bool, respond func(model.EnsureResponse)) error {
	// Otherwise the request could be accepted between the check and the record.
	c.accepting.Lock()
	defer c.accepting.Unlock()
	q, waiting, err := c.store.cancel(ctx, &request{ID: why.Request}, why.Error(), respond)
	if run := (&request{ID: why.Request, Run: true}); err == nil && q == nil && c.store.knows(run) {
		// The id names a run request, but an ensure request with the same id may arrive later: cancel
		// both.
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

// applyUnknown remembers a cancel that arrived before its request. A cancel from the stream replaced
// its request there, so its response is the result of the request.
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

// accept accepts a request. It reports whether the request is new and whether it was cancelled before
// it arrived. A cancelled request gets its final response at once.
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

// maxCancels limits the remembered cancels of unknown requests. They are stored apart from the
// requests: a flood of cancels must not displace executed requests, which could be delivered again.
const maxCancels = 1000

// earlyCancel is a cancel that arrived before its request.
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
