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

// ErrNotPermitted is something that the server does not let these credentials
// do; it stays so until they are given more.
var ErrNotPermitted = errors.New("not permitted")

// denials tell whoever waits for an answer that the server refused the
// question: it says so to the connection only, and no answer ever comes.
type denials struct {
	mu      sync.Mutex
	waiting map[*waiter]bool
	// inbox is that no answer can be received at all. It is said once for a
	// connection, and holds until the reconnect counted by epoch.
	inbox error
	epoch uint64
}

// waiter is a call that waits, and what it asked or listens to.
type waiter struct {
	concerns func(subject string) bool
	fail     context.CancelCauseFunc
}

// listen makes the refusals of a connection known.
func (r *denials) listen(nc *nats.Conn) {
	r.waiting = map[*waiter]bool{}
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			r.tell(nc, err)
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
}

// tell fails the calls that a refusal is about.
func (r *denials) tell(nc *nats.Conn, violation error) {
	verb, subject := refused(violation)
	err := fmt.Errorf("%w to %s %s", ErrNotPermitted, verb, subject)
	inbox, _, _ := strings.Cut(nc.NewInbox(), ".")
	isInbox := verb == "subscribe to" && strings.HasPrefix(subject, inbox+".")
	r.mu.Lock()
	defer r.mu.Unlock()
	if isInbox {
		r.inbox, r.epoch = fmt.Errorf("%w, where answers come to: are these the credentials of a node", err), nc.Stats().Reconnects
		err = r.inbox
	}
	for w := range r.waiting {
		if isInbox || w.concerns(subject) {
			w.fail(err)
		}
	}
}

// refused gives what a violation is about: the client has no more than a text.
func refused(violation error) (verb, subject string) {
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

// permitted gives a context that ends when the server refuses what concerns it,
// and a function that ends the waiting and makes the refusal the error.
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

// to is about a request to, or a subscription of, one of some subjects.
func To(subjects ...string) func(string) bool {
	return func(refused string) bool { return slices.Contains(subjects, refused) }
}

// apiOf is about what is asked of JetStream about a stream.
func APIOf(stream string) func(string) bool {
	return func(refused string) bool {
		return strings.HasPrefix(refused, "$JS.API.") && strings.Contains(refused+".", "."+stream+".")
	}
}
