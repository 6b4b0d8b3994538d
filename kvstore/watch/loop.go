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

// loop watches the families of one set of groups. Only its own goroutine uses its fields.
type loop struct {
	store  *kvstore.Store
	o      Options
	bucket bucket
	table  *table
	// pending holds the announced keys.
	pending *pending
	wake    func([]string)

	// parts holds the progress of each family, the node's own first.
	parts parts
	// missing holds the active keys that the bucket lacks.
	missing missing
	// kept logs the active keys that the bucket lacks.
	kept telemetry.RateLimitedLog
	// completed reports whether a family became complete since the last wake.
	completed bool
	// reported holds the errors in Sync at the last wake.
	reported       string
	resubscription resubscription
}

func newLoop(s *kvstore.Store, b bucket, o Options, families []string, t *table) *loop {
	l := &loop{store: s, o: o, bucket: b, table: t, pending: newPending(len(families)), parts: newParts(families, o.Retry), missing: missing{}}
	l.pending.together = b.inOrder
	l.resubscription = resubscription{store: s, o: o, isMain: b.isMain}
	_, l.reported = t.takeChanged()
	entries, _ := t.all()
	for _, e := range entries {
		for _, p := range l.parts {
			p.last = max(p.last, e.Revision)
		}
	}

	return l
}

// run works until the context ends. It returns an error if the connection is closed.
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
	connected := l.store.Conn.StatusChanged(nats.CONNECTED)
	defer l.store.Conn.RemoveStatusListener(connected)
	var unsubscribed <-chan struct{}
	if l.bucket.isMain {
		unsubscribed = l.store.Denials.Unsubscribed()
		l.store.Denials.Forget(l.resubscription.wants)
		l.resubscription.deny(ctx) // the server reports a denial only once
	}
	for {
		select {
		case <-ctx.Done():
		case <-l.pending.came:
		case <-connected:
			l.parts.soon(l.spread())
			l.resubscription.reconnected(time.Now())
		case <-unsubscribed:
			l.resubscription.deny(ctx)
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

// subscribe subscribes to the headers of each change of the node's families.
func (l *loop) subscribe() ([]*nats.Subscription, error) {
	var subs []*nats.Subscription
	for i, p := range l.parts {
		own := i == 0
		sub, err := l.store.Conn.Subscribe(l.bucket.changed(p.family), func(m *nats.Msg) {
			key, ok := l.bucket.announced(m.Subject)
			if !ok || strings.ContainsAny(key, "*>") {
				return // a client may publish on a wildcard subject, which names no key
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

// spread returns a random part of the jitter for groups.
func (l *loop) spread() time.Duration {
	return time.Duration(l.o.Rand() * float64(l.o.GroupJitter))
}

// next returns the time of the next step.
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

// step does the due work. It wakes the listener if keys changed, a family became complete, or the
// errors in Sync changed. It returns an error if the connection is closed. It records other errors in
// Sync and retries later.
func (l *loop) step(ctx context.Context) error {
	if l.store.Conn.IsClosed() {
		return nats.ErrConnectionClosed
	}
	now := time.Now()
	l.readDue(ctx, now)
	if due := l.parts.due(now); len(due) > 0 {
		l.catchUp(ctx, due)
	}
	if l.resubscription.isDue(now) {
		l.resubscription.reconnect(ctx)
	}
	// By now the server would have denied the subscriptions of the new connection.
	if l.resubscription.checks(now) && l.store.Away() == nil && l.resubscription.denied() == nil {
		l.resubscription.permit(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	keys, problems := l.table.takeChanged()
	if len(keys) > 0 || l.completed || problems != l.reported {
		l.reported, l.completed = problems, false
		l.wake(keys)
	}

	return nil
}

// readDue reads each due announced key once. If the read fails, or a lagging replica returns an older
// message, the key waits for its next try and does not delay others.
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
	l.settle()
}

// catchUp compares families with the bucket and schedules the next comparison.
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
		// The next comparison is never later than the audit interval.
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
		l.resubscription.reconnect(ctx)
	}
}

// settle updates Sync from the state of the families.
func (l *loop) settle() {
	known, failed, why := l.parts.state()
	refused, denied, first := l.store.Refused(), l.resubscription.denied(), false
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
		l.o.Log.Warn("answer of NATS rejected: it does not match the request", "node", l.o.Node)
	}
}

// failed schedules a retry with a growing pause. It logs only new errors as warnings.
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
