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

// Denials end the calls that wait for an answer to a denied request: the server
// reports a denial to the connection only, and never answers.
type Denials struct {
	nc      *nats.Conn
	mu      sync.Mutex
	waiting map[*waiter]bool
	// subscriptions are the denials of subscriptions by their subjects, inbox is that of all
	// answers.
	subscriptions map[string]lasting
	inbox         lasting
	// node is the command that prints the permissions of an agent's node.
	node string
	// unsubscribed has a token when a subscription was denied.
	unsubscribed chan struct{}
}

// lasting is a denial that the server reports once for a connection; it holds until
// the next connection, counted by epoch.
type lasting struct {
	err   error
	epoch uint64
}

// on returns the denial while it holds, nil for none.
func (l lasting) on(nc *nats.Conn) error {
	if l.epoch != nc.Stats().Reconnects {
		return nil
	}

	return l.err
}

// maxSubscriptions bounds the denials of subscriptions that are known: a server may report any
// number of them.
const maxSubscriptions = 1024

// waiter is a waiting call and the subjects that concern it.
type waiter struct {
	concerns func(subject string) bool
	fail     context.CancelCauseFunc
}

// listen receives the denials of a connection, and passes them on to its error handler,
// but for those of expected subjects.
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

// deny ends the calls that a denial concerns: all of them, where it is of their answers.
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

// OfNode has the remedies be those of a node, of which a command prints the permissions.
func (r *Denials) OfNode(command string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.node = command
}

// nodeCommand returns the command of OfNode, empty for an operator.
func (r *Denials) nodeCommand() string {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.node
}

// Permitted returns a context that ends when the server denies what concerns it, and
// a function that ends the waiting and replaces an error by the denial.
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

// Subscription returns the denial of all answers, else the first one of a subscription to a
// subject that is wanted, by their order, nil when there was none since the connection was made.
// The server accepts such a subscription on another connection only, also once it is permitted.
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

// Forget forgets the denials of subscriptions to subjects that are not wanted any more.
func (r *Denials) Forget(wanted func(subject string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.subscriptions, func(subject string, _ lasting) bool { return !wanted(subject) })
}

// Unsubscribed returns a channel that has a token when a subscription was denied since
// the last one was received.
func (r *Denials) Unsubscribed() <-chan struct{} { return r.unsubscribed }

// To concerns requests to and subscriptions of some subjects.
func To(subjects ...string) func(string) bool {
	return func(denied string) bool { return slices.Contains(subjects, denied) }
}
