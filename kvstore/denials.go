package kvstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Denials ends the calls that wait for an answer to a denied request. The server reports a denial only
// to the connection, and never answers the request.
type Denials struct {
	nc      *nats.Conn
	mu      sync.Mutex
	waiting map[*waiter]bool
	// subscriptions holds the denials of subscriptions by subject. inbox is the denial of all answers.
	subscriptions map[string]lasting
	inbox         lasting
	// node is the command that prints the permissions of the node, or "".
	node string
	// unsubscribed receives a token when a subscription is denied.
	unsubscribed chan struct{}
}

// lasting is a denial that the server reports once per connection. It is valid until the next
// reconnect. epoch is the number of reconnects.
type lasting struct {
	err   error
	epoch uint64
}

// on returns the denial, or nil if it is no longer valid.
func (l lasting) on(nc *nats.Conn) error {
	if l.epoch != nc.Stats().Reconnects {
		return nil
	}

	return l.err
}

// maxSubscriptions limits the recorded denials of subscriptions.
const maxSubscriptions = 1024

// waiter is a waiting call and the subjects that it uses.
type waiter struct {
	concerns func(subject string) bool
	fail     context.CancelCauseFunc
}

// listen records the denials of a connection and passes them to the previous error handler, except for
// expected ones.
func (r *Denials) listen(nc *nats.Conn, c DenialContext, expected func(subject string) bool) {
	r.nc, r.waiting, r.subscriptions, r.unsubscribed = nc, map[*waiter]bool{}, map[string]lasting{}, make(chan struct{}, 1)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		isExpected := false
		if errors.Is(err, nats.ErrPermissionViolation) {
			d := c.Of(err)
			r.deny(d, c.IsOfAnswers(d))
			isExpected, err = expected(d.Subject), d
		}
		if before != nil && !isExpected {
			before(nc, sub, err)
		}
	})
}

// deny ends the calls that a denial affects. If it prevents answers, these are all calls.
func (r *Denials) deny(d *Denial, ofAnswers bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := lasting{d, r.nc.Stats().Reconnects}
	if ofAnswers && r.inbox.on(r.nc) == nil {
		r.inbox = now
	}
	if d.IsOfSubscription() {
		maps.DeleteFunc(r.subscriptions, func(_ string, l lasting) bool { return l.on(r.nc) == nil })
		if len(r.subscriptions) < maxSubscriptions {
			r.subscriptions[d.Subject] = now
		}
		select {
		case r.unsubscribed <- struct{}{}:
		default:
		}
	}
	for w := range r.waiting {
		if ofAnswers || w.concerns(d.Subject) {
			w.fail(d)
		}
	}
}

// OfNode sets the remedy for an agent: the command that prints its permissions.
func (r *Denials) OfNode(command string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = command
}

// nodeCommand returns the command set by OfNode, or "" for an operator.
func (r *Denials) nodeCommand() string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.node
}

// Permitted returns a context that ends when the server denies a subject that the call uses. The
// caller passes its error to the returned function, which ends the waiting and returns the denial
// instead, if there is one.
func (r *Denials) Permitted(ctx context.Context, concerns func(subject string) bool) (context.Context, func(error) error) {
	ctx, fail := context.WithCancelCause(ctx)
	w := &waiter{concerns, fail}
	r.mu.Lock()
	if err := r.inbox.on(r.nc); err != nil {
		fail(err)
	}
	r.waiting[w] = true
	r.mu.Unlock()

	return ctx, func(err error) error {
		r.mu.Lock()
		delete(r.waiting, w)
		r.mu.Unlock()
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, model.ErrNotPermitted) {
			err = cause
		}
		fail(nil)

		return err
	}
}

// Denials returns the denials of the connection.
func (s *Store) Denials() *Denials { return &s.denials }

// Subscription returns the denial of all answers, or else the first denial, sorted by text, of a
// wanted subject. It returns nil if nothing was denied on this connection. The server accepts a denied
// subscription only on a new connection, even if it has become permitted.
func (r *Denials) Subscription(wanted func(subject string) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.inbox.on(r.nc); err != nil {
		return err
	}
	var first error
	for subject, l := range r.subscriptions {
		if err := l.on(r.nc); err != nil && wanted(subject) && (first == nil || err.Error() < first.Error()) {
			first = err
		}
	}

	return first
}

// Forget removes the denials of subjects that are not wanted.
func (r *Denials) Forget(wanted func(subject string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.subscriptions, func(subject string, _ lasting) bool { return !wanted(subject) })
}

// Unsubscribed returns a channel that receives a token when a subscription is denied.
func (r *Denials) Unsubscribed() <-chan struct{} { return r.unsubscribed }

// To returns a function that reports whether a subject is one of the given subjects.
func To(subjects ...string) func(string) bool {
	return func(denied string) bool { return slices.Contains(subjects, denied) }
}
