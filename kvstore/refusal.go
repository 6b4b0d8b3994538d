package kvstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrNotPermitted is an operation that the permissions of these credentials deny.
var ErrNotPermitted = errors.New("not permitted")

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
func (r *denials) listen(nc *nats.Conn, expected func(subject string) bool) {
	r.waiting = map[*waiter]bool{}
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		quiet := false
		if errors.Is(err, nats.ErrPermissionViolation) {
			r.deny(nc, err)
			_, subject := denied(err)
			quiet = expected(subject)
		}
		if before != nil && !quiet {
			before(nc, sub, err)
		}
	})
}

// deny ends the calls that a denial concerns.
func (r *denials) deny(nc *nats.Conn, violation error) {
	verb, subject := denied(violation)
	err := fmt.Errorf("%w to %s %s", ErrNotPermitted, verb, subject)
	inbox, _, _ := strings.Cut(nc.NewInbox(), ".")
	isInbox := verb == "subscribe to" && strings.HasPrefix(subject, inbox+".")
	r.mu.Lock()
	defer r.mu.Unlock()
	if isInbox {
		r.inbox, r.epoch = fmt.Errorf("%w, where answers arrive: are these the credentials of a node, or of an operator who needs --inbox-prefix _INBOX_NAME", err), nc.Stats().Reconnects
		err = r.inbox
	}
	for w := range r.waiting {
		if isInbox || w.concerns(subject) {
			w.fail(err)
		}
	}
}

// denied returns what a violation is about: the client has its text only.
func denied(violation error) (verb, subject string) {
	m := regexp.MustCompile(`(?i)violation for (publish|subscription) to "([^"]+)"`).FindStringSubmatch(violation.Error())
	switch {
	case m == nil:
		return "do it:", violation.Error()
	case strings.EqualFold(m[1], "publish"):
		return "publish to", m[2]
	default:
		return "subscribe to", m[2]
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
