package watch

import (
	"context"
	"fmt"
	"time"
)

// resubscription plans when the node connects again because the server denied a
// subscription, by permissions that are wrong, perhaps for a moment: once they are right
// the server accepts it on another connection only.
type resubscription struct {
	// at is when it is due; zero is never.
	at time.Time
	// wait is the wait for the next one, last is when the last one was.
	wait time.Duration
	last time.Time
}

func (r *resubscription) isDue(now time.Time) bool { return !r.at.IsZero() && !r.at.After(now) }

// plan plans to connect again unless that is planned, later each time, and reports
// whether it did, and for the first time.
func (r *resubscription) plan(now time.Time, o Options) (isPlanned, isFirst bool) {
	if !r.at.IsZero() {
		return false, false
	}
	if isFirst = now.Sub(r.last) > o.Audit; isFirst {
		r.wait = o.Retry
	}
	r.at = now.Add(time.Duration((0.5 + o.Rand()/2) * float64(r.wait)))
	r.wait = min(2*r.wait, o.Audit)

	return true, isFirst
}

// planSubscribing plans to connect again. Only what is new is worth a warning, and the
// denial: the line that says how long it takes must not be left out as a known cause.
func (l *loop) planSubscribing(ctx context.Context) {
	now := time.Now()
	isPlanned, isFirst := l.resubscription.plan(now, l.o)
	attributes := []any{"node", l.o.Node, "in", l.resubscription.at.Sub(now).Round(time.Millisecond)}
	switch {
	case isFirst:
		l.o.Log.WarnContext(ctx, "subscription denied, will reconnect", append(attributes, "error", l.denied())...)
	case isPlanned:
		l.o.Log.InfoContext(ctx, "subscription still denied, will reconnect", append(attributes, "remedy", "permit it; then restart the agent to have it at once")...)
	}
}

// subscribeAgain reconnects, so that the server accepts all subscriptions, unless that
// was done meanwhile.
func (l *loop) subscribeAgain(ctx context.Context) {
	l.resubscription.at = time.Time{}
	denied := l.denied()
	if denied == nil {
		return
	}
	l.resubscription.last = time.Now()
	l.o.Log.InfoContext(ctx, "reconnecting to subscribe again", "node", l.o.Node, "denied", denied)
	if err := l.store.Conn().ForceReconnect(); err != nil {
		l.o.Log.WarnContext(ctx, "cannot reconnect", "error", err)
	}
}

// denied returns the first denial, by order, of a subscription on this connection.
func (l *loop) denied() error {
	err := l.store.Denials().Subscription()
	if lacksRemedy(err) {
		err = fmt.Errorf("%w (%s)", err, remedy(l.o))
	}

	return err
}
