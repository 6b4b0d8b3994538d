package kvstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/denial"
)

// ErrNotPermitted is an operation that the permissions of these credentials deny.
var ErrNotPermitted = denial.ErrNotPermitted

// denials end the calls that wait for an answer to a denied request: the server
// reports a denial to the connection only, and never answers.
type denials struct {
	mu      sync.Mutex
	waiting map[*waiter]bool
	// inbox is the denial of all answers. The server reports it once for a connection;
	// it holds until the next one, counted by epoch.
	inbox error
	epoch uint64
}

// waiter is a waiting call and the subjects that concern it.
type waiter struct {
	concerns func(subject string) bool
	fail     context.CancelCauseFunc
}

// listen receives the denials of a connection, and keeps those of expected
// subjects from its handler.
func (r *denials) listen(nc *nats.Conn, c denial.Connection, expected func(subject string) bool) {
	r.waiting = map[*waiter]bool{}
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		quiet := false
		if errors.Is(err, nats.ErrPermissionViolation) {
			d := c.Of(err)
			r.deny(nc, d, c.IsOfAnswers(d))
			quiet, err = expected(d.Subject), d
		}
		if before != nil && !quiet {
			before(nc, sub, err)
		}
	})
}

// deny ends the calls that a denial concerns, or all where it is of their answers.
func (r *denials) deny(nc *nats.Conn, d *denial.Denial, ofAnswers bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ofAnswers {
		r.inbox, r.epoch = d, nc.Stats().Reconnects
	}
	for w := range r.waiting {
		if ofAnswers || w.concerns(d.Subject) {
			w.fail(d)
		}
	}
}

// Permitted returns a context that ends when the server denies what concerns it, and
// a function that ends the waiting and replaces an error by the denial.
func (s *Store) Permitted(ctx context.Context, concerns func(subject string) bool) (context.Context, func(error) error) {
	ctx, fail := context.WithCancelCause(ctx)
	w := &waiter{concerns, fail}
	r := &s.denials
	r.mu.Lock()
	if r.inbox != nil && r.epoch == s.nc.Stats().Reconnects {
		fail(r.inbox)
	}
	r.waiting[w] = true
	r.mu.Unlock()

	return ctx, func(err error) error {
		r.mu.Lock()
		delete(r.waiting, w)
		r.mu.Unlock()
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrNotPermitted) {
			err = cause
		}
		fail(nil)

		return err
	}
}

// To concerns requests to and subscriptions of some subjects.
func To(subjects ...string) func(string) bool {
	return func(refused string) bool { return slices.Contains(subjects, refused) }
}

// About concerns requests to JetStream about a stream.
func (a API) About(stream string) func(string) bool {
	return func(refused string) bool {
		return strings.HasPrefix(refused, a.Subject("")) && strings.Contains(refused+".", "."+stream+".")
	}
}
