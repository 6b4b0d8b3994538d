package watch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	reported string
	// resubscription plans the reconnect after a denied subscription.
	resubscription resubscription
}

func newLoop(s *kvstore.Store, b bucket, o Options, families []string, t *table) *loop {
	l := &loop{store: s, o: o, bucket: b, table: t, pending: newPending(len(families)), parts: newParts(families, o.Retry), missing: missing{}}
	l.pending.together = b.inOrder
	_, l.reported = t.takeChanged()

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
		l.store.Denials.Forget(l.wants)
		l.resubscription.deny(ctx, l.o, l.denied()) // the server reports a denial only once
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

// step does the due work and wakes the listener. It returns an error if the connection is closed. It
// records other errors in Sync and retries later.
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
		l.subscribeAgain(ctx)
	}
	// By now the server would have denied the subscriptions of the new connection.
	if l.resubscription.checks(now) && l.store.Away() == nil && l.denied() == nil {
		l.resubscription.permit(ctx, l.o)
	}
	if ctx.Err() == nil {
		l.flush()
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
		l.subscribeAgain(ctx)
	}
}

// settle updates Sync from the state of the families.
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

// flush wakes the listener if keys changed, a family became complete, or the errors in Sync changed.
func (l *loop) flush() {
	keys, problems := l.table.takeChanged()
	if len(keys) == 0 && !l.completed && problems == l.reported {
		return
	}
	l.reported, l.completed = problems, false
	l.wake(keys)
}

// stillDenied is the interval of log messages about subscriptions that stay denied.
const stillDenied = time.Hour

// resubscription plans reconnects after a denied subscription. The server accepts a subscription that
// has become permitted only on a new connection.
type resubscription struct {
	// at is the time of the next reconnect, or zero.
	at time.Time
	// wait is the pause before the next reconnect. last is the time of the last reconnect.
	wait time.Duration
	last time.Time
	// since is the time of the first denial, or zero if nothing is denied. logged is the time of the
	// last log message.
	since, logged time.Time
	// check is the time at which a new connection would have received its denials, or zero.
	check time.Time
}

func (r *resubscription) isDue(now time.Time) bool { return !r.at.IsZero() && !r.at.After(now) }

// plan schedules a reconnect with a growing pause, unless one is scheduled. isPlanned reports whether
// it did, isFirst whether this is the first denial for a while.
func (r *resubscription) plan(now time.Time, o Options) (isPlanned, isFirst bool) {
	if !r.at.IsZero() {
		return false, false
	}
	if isFirst = now.Sub(r.last) > o.Audit; isFirst {
		r.wait = o.Retry
	}
	if r.since.IsZero() {
		r.since = now
	}
	r.check = time.Time{}
	r.at = now.Add(time.Duration((0.5 + o.Rand()/2) * float64(r.wait)))
	r.wait = min(2*r.wait, o.Audit)

	return true, isFirst
}

// reconnected schedules a check of the subscriptions if one was denied.
func (r *resubscription) reconnected(now time.Time, o Options) {
	if !r.since.IsZero() {
		r.check = now.Add(o.Retry)
	}
}

// checks reports once whether the check is due.
func (r *resubscription) checks(now time.Time) bool {
	if r.check.IsZero() || r.check.After(now) {
		return false
	}
	r.check = time.Time{}

	return true
}

// deny schedules a reconnect if a subscription is denied, and logs it. Only a new denial is a warning
// with the error. Later messages leave the error out, because a limited log drops known errors.
func (r *resubscription) deny(ctx context.Context, o Options, denied error) {
	if denied == nil {
		return
	}
	now := time.Now()
	isPlanned, isFirst := r.plan(now, o)
	event, level := "subscription still denied, will reconnect", slog.LevelDebug
	attributes := []any{"node", o.Node, "in", r.at.Sub(now).Round(time.Millisecond), "remedy", "permit it; then restart the agent to have it at once"}
	switch {
	case !isPlanned:
		return
	case isFirst:
		event, level = "subscription denied, will reconnect", slog.LevelWarn
		attributes = append(attributes, "error", denied)
	case now.Sub(r.logged) >= stillDenied:
		level = slog.LevelInfo
	}
	if level > slog.LevelDebug {
		r.logged = now
	}
	o.Log.Log(ctx, level, event, attributes...)
}

// permit logs that all subscriptions are permitted again.
func (r *resubscription) permit(ctx context.Context, o Options) {
	o.Log.InfoContext(ctx, "subscriptions permitted again", "node", o.Node, "after", time.Since(r.since).Round(time.Second))
	r.since = time.Time{}
}

// subscribeAgain reconnects if a subscription is still denied.
func (l *loop) subscribeAgain(ctx context.Context) {
	l.resubscription.at = time.Time{}
	denied := l.denied()
	if denied == nil {
		return
	}
	l.resubscription.last = time.Now()
	l.o.Log.DebugContext(ctx, "reconnecting to subscribe again", "node", l.o.Node, "denied", denied)
	if err := l.store.Conn.ForceReconnect(); err != nil {
		l.o.Log.WarnContext(ctx, "cannot reconnect", "error", err)
	}
}

// denied returns the first denied subscription of this connection that the node still needs. It
// returns nil if another watch is the main one.
func (l *loop) denied() error {
	if !l.bucket.isMain {
		return nil
	}

	return kvstore.DenialWithRemedy(l.store.Denials.Subscription(l.wants), l.o.Node, l.o.Groups)
}

// wants reports whether the node still needs a subject. A denial may arrive after the node left the
// group.
func (l *loop) wants(subject string) bool {
	group := l.store.Names.GroupOf(subject)

	return group == "" || group == model.GroupAll || slices.Contains(l.o.Groups, group)
}
