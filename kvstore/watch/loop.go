package watch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// loop watches for one set of groups: what it does next, and what only it may
// touch.
type loop struct {
	store  *kvstore.Store
	o      Options
	bucket bucket
	table  *table
	// pending are the keys that were announced.
	pending *pending
	wake    func([]string)

	// parts are how far it is with each family, in their order.
	parts parts
	// missing are the keys in force that the bucket lacks, and since when.
	missing missing
	// kept logs the keys that stay in force although the bucket lacks them.
	kept telemetry.RateLimitedLog
	// completed reports that a family became complete since the listener was last woken.
	completed bool
	// reported are the errors in Sync when the listener was last woken.
	reported string
	// resubscription is the next connection for what was denied.
	resubscription resubscription
}

func newLoop(s *kvstore.Store, b bucket, o Options, families []string, t *table) *loop {
	l := &loop{store: s, o: o, bucket: b, table: t, pending: newPending(len(families)), parts: newParts(families, o.Retry), missing: missing{}}
	l.pending.together = b.inOrder
	_, l.reported = t.takeChanged()

	return l
}

// run does what is due until the context ends; the error is that the connection
// was closed for good.
func (l *loop) run(ctx context.Context, wake func([]string)) error {
	l.wake = wake
	subs, err := l.subscribe()
	defer func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}()
	if err != nil {
		return err
	}
	connected := l.store.Conn().StatusChanged(nats.CONNECTED)
	defer l.store.Conn().RemoveStatusListener(connected)
	var unsubscribed <-chan struct{}
	if l.bucket.isMain {
		unsubscribed = l.store.Denials().Unsubscribed()
		l.store.Denials().Forget(l.wants)
		l.resubscription.deny(ctx, l.o, l.denied()) // of what stays subscribed nothing is heard again
	}
	for {
		select {
		case <-ctx.Done():
		case <-l.pending.came:
		case <-connected:
			l.parts.soon(l.spread())
			l.resubscription.reconnected(time.Now(), l.o)
		case <-unsubscribed:
			l.resubscription.deny(ctx, l.o, l.denied())
		case <-time.After(time.Until(l.next())):
			err = l.step(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// subscribe asks for the headers of each change of the node's families.
func (l *loop) subscribe() ([]*nats.Subscription, error) {
	var subs []*nats.Subscription
	for i, p := range l.parts {
		own := i == 0
		sub, err := l.store.Conn().Subscribe(l.bucket.changed(p.family), func(m *nats.Msg) {
			key, ok := l.bucket.announced(m.Subject)
			if !ok || strings.ContainsAny(key, "*>") {
				return // a client may publish on a wildcard, which is no key
			}
			due := time.Now()
			if !own {
				due = due.Add(l.spread())
			}
			l.pending.add(i, key, kvstore.RepublishedSequence(m), due)
		})
		if err != nil {
			return subs, err
		}
		subs = append(subs, sub)
	}

	return subs, nil
}

// spread returns a moment within the jitter of groups.
func (l *loop) spread() time.Duration {
	return time.Duration(l.o.Rand() * float64(l.o.GroupJitter))
}

// next returns when there is something to do.
func (l *loop) next() time.Time {
	at := l.parts.next()
	if due, ok := l.pending.next(); ok && due.Before(at) {
		at = due
	}
	for _, due := range []time.Time{l.resubscription.at, l.resubscription.check} {
		if !due.IsZero() && due.Before(at) {
			at = due
		}
	}

	return at
}

// step does what is due, and wakes whoever listens. The error is that of a closed
// connection; any other is kept in Sync and tried again later.
func (l *loop) step(ctx context.Context) error {
	if l.store.Conn().IsClosed() {
		return nats.ErrConnectionClosed
	}
	now := time.Now()
	l.readDue(ctx, now)
	if due := l.parts.due(now); len(due) > 0 {
		l.catchUp(ctx, due)
	}
	if l.resubscription.isDue(now) {
		l.subscribeAgain(ctx)
	}
	// The server had the time to deny what a new connection asked for.
	if l.resubscription.checks(now) && l.store.Away() == nil && l.denied() == nil {
		l.resubscription.permit(ctx, l.o)
	}
	if ctx.Err() == nil {
		l.flush()
	}

	return nil
}

// readDue reads keys that were announced and are due, each once: one that is not yet what was
// announced, because a replica lags, waits without holding up others, and so do those that
// could not be read. A family of which keys were left out is compared.
func (l *loop) readDue(ctx context.Context, now time.Time) {
	failed := map[*part]error{}
	for _, a := range l.pending.take(now) {
		p, done := l.parts[a.family], false
		if failed[p] == nil {
			last := a.tries == kvstore.LagTries-1 || now.Sub(a.since) > patience
			done, failed[p] = l.tryKey(ctx, a.key, a.sequence, last)
		}
		switch {
		case failed[p] != nil:
			a.due = now.Add(l.o.Retry)
			a.since = a.due
			l.pending.again(a)
		case !done:
			a.due = time.Now().Add(kvstore.LagWait(a.tries))
			a.tries++
			l.pending.again(a)
		}
	}
	for _, p := range l.parts {
		if failed[p] != nil {
			l.failed(ctx, p, failed[p])
		}
	}
	for _, family := range l.pending.overflowed() {
		l.parts[family].overflow(now, l.spread(), l.o.Retry)
	}
	l.settle()
}

// catchUp compares families with the bucket and plans the next time.
func (l *loop) catchUp(ctx context.Context, due []*part) {
	now := time.Now()
	failed := l.compareAll(ctx, due)
	admitted := false
	for _, p := range due {
		if err := failed[p]; err != nil {
			l.failed(ctx, p, err)
			continue
		}
		admitted = admitted || errors.Is(p.err, model.ErrNotPermitted)
		// Never later than the audit that was promised.
		p.retry, p.err = l.o.Retry, nil
		p.at = now.Add(time.Duration((1 - l.o.Rand()/4) * float64(l.o.Audit)))
		l.completed = l.completed || !p.complete
		p.complete = true
	}
	for key, since := range l.missing {
		if p, again := l.parts.of(key), since.Add(l.o.Gone); again.Before(p.at) {
			p.at = again
		}
	}
	l.settle()
	if admitted {
		l.subscribeAgain(ctx)
	}
}

// settle updates Sync by the state of the families.
func (l *loop) settle() {
	known, failed, why := l.parts.state()
	refused, denied, first := l.store.Refused(), l.denied(), false
	l.table.update(func(s *model.Sync) {
		first = s.Refused == 0 && refused > 0
		s.Known, s.Failed, s.Err, s.Refused, s.Denied = known, failed, nil, refused, denied
		switch {
		case len(failed) > 0:
			s.Err = kvstore.JoinDenials(why)
		case len(known) == len(l.parts):
			s.At = time.Now()
		}
	})
	if first && l.bucket.isMain {
		l.o.Log.Warn("answer of NATS refused: it is not of what was asked for, or claims to come from elsewhere", "node", l.o.Node)
	}
}

// failed plans another try, later each time. Only what is new is worth a warning.
func (l *loop) failed(ctx context.Context, p *part, err error) {
	if ctx.Err() != nil {
		return
	}
	err = kvstore.DenialOfFamily(err, p.family, l.o.Node, l.o.Groups)
	level := slog.LevelDebug
	away := errors.Is(p.err, nats.ErrDisconnected) && !errors.Is(err, nats.ErrDisconnected)
	if p.err == nil || away || errors.Is(err, model.ErrNotPermitted) && p.err.Error() != err.Error() {
		level = slog.LevelWarn
	}
	p.err = err
	l.o.Log.Log(ctx, level, "cannot read "+l.bucket.values+", will retry", "node", l.o.Node, "family", p.family, "in", p.retry, "error", err)
	p.at = time.Now().Add(time.Duration((0.5 + l.o.Rand()/2) * float64(p.retry)))
	p.retry = min(2*p.retry, kvstore.MaxRetry*l.o.Retry)
}

// flush wakes with the keys that changed, if any or if something else is worth it.
func (l *loop) flush() {
	keys, problems := l.table.takeChanged()
	if len(keys) == 0 && !l.completed && problems == l.reported {
		return
	}
	l.reported, l.completed = problems, false
	l.wake(keys)
}
