package kvstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

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

// listen receives the denials of the connection, and keeps those that only show where
// JetStream is asked from its handler.
func (s *Store) listen() {
	s.denials.waiting = map[*waiter]bool{}
	before := s.nc.ErrorHandler()
	s.nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		quiet := false
		if errors.Is(err, nats.ErrPermissionViolation) {
			denial := s.newDenial(err)
			s.denials.deny(nc, denial)
			quiet, err = s.apis.isProbe(denial.Subject), denial
		}
		if before != nil && !quiet {
			before(nc, sub, err)
		}
	})
}

// deny ends the calls that a denial concerns.
func (r *denials) deny(nc *nats.Conn, denial *Denial) {
	inbox, _, _ := strings.Cut(nc.NewInbox(), ".")
	isInbox := denial.Verb == "subscribe to" && strings.HasPrefix(denial.Subject, inbox+".")
	r.mu.Lock()
	defer r.mu.Unlock()
	if isInbox {
		r.inbox, r.epoch = denial, nc.Stats().Reconnects
	}
	for w := range r.waiting {
		if isInbox || w.concerns(denial.Subject) {
			w.fail(denial)
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
