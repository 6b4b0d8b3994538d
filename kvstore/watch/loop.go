package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// loop is one run of a watch: what it does next, and what only it may touch.
type loop struct {
	*Watch
	pending *pending
	wake    func([]string)

	// parts are how far it is with each family, in their order.
	parts []*part
	// newest is the last message of each family when all of it was last read.
	newest map[string]mark
	// listAt is when keys are listed; zero while no family is complete.
	listAt  time.Time
	changed []string
	// reported are the errors in Sync when the listener was last woken.
	reported string
}

// part is how far a loop is with one family. What one family lacks does not hold
// up the others.
type part struct {
	family string
	// at is when it is compared with the bucket.
	at    time.Time
	retry time.Duration
	// complete reports whether everything of it was known once.
	complete bool
	err      error
}

// mark identifies a stored message, also by its time: a bucket that
// was recreated counts from 1 again.
type mark struct {
	sequence uint64
	time     int64
}

func markOf(m kvstore.Message) mark { return mark{sequence: m.Sequence, time: m.Time.UnixNano()} }

func newLoop(w *Watch, p *pending, wake func([]string)) *loop {
	l := &loop{Watch: w, pending: p, wake: wake, newest: map[string]mark{}}
	for _, family := range w.families {
		l.parts = append(l.parts, &part{family: family, at: time.Now(), retry: w.o.Retry})
	}
	l.reported = l.errors()

	return l
}

// next returns when there is something to do.
func (l *loop) next() time.Time {
	at := l.parts[0].at
	for _, p := range l.parts {
		if p.at.Before(at) {
			at = p.at
		}
	}
	if !l.listAt.IsZero() && l.listAt.Before(at) {
		at = l.listAt
	}
	if due, ok := l.pending.next(); ok && due.Before(at) {
		at = due
	}

	return at
}

// reconnected plans to compare with the bucket soon: what was announced
// meanwhile is lost.
func (l *loop) reconnected() {
	for _, p := range l.parts {
		soon := time.Now()
		if p.complete {
			soon = soon.Add(l.spread())
		}
		if soon.Before(p.at) {
			p.at = soon
		}
	}
}

// step does what is due, and wakes whoever listens. An error other than that of
// a closed connection is kept in Sync and tried again later.
func (l *loop) step(ctx context.Context) error {
	if l.store.Conn().IsClosed() {
		return nats.ErrConnectionClosed
	}
	now := time.Now()
	l.readDue(ctx, now)
	var due []*part
	for _, p := range l.parts {
		if !p.at.After(now) {
			due = append(due, p)
		}
	}
	switch {
	case len(due) > 0:
		l.catchUp(ctx, due)
	case !l.listAt.IsZero() && !l.listAt.After(now):
		l.list(ctx)
	}
	if ctx.Err() == nil {
		l.flush()
	}

	return nil
}

// readDue reads the keys that were announced and are due. Those it could not
// read wait for the next try.
func (l *loop) readDue(ctx context.Context, now time.Time) {
	failed := map[string]error{}
	for key, sequence := range l.pending.take(now) {
		family, name, ok := kvstore.AssignmentKey(key)
		if !ok {
			family = l.familyOf(key)
		}
		switch {
		case failed[family] != nil:
		case ok:
			failed[family] = l.read(ctx, family, name, sequence)
		default:
			failed[family] = l.readInvalid(ctx, key)
		}
		if failed[family] != nil {
			l.pending.add(key, sequence, now.Add(l.o.Retry))
		}
	}
	for _, p := range l.parts {
		if err := failed[p.family]; err != nil {
			l.failed(ctx, p, err)
		}
	}
	l.settle()
}

// catchUp compares families with the bucket and plans the next time.
func (l *loop) catchUp(ctx context.Context, due []*part) {
	now := time.Now()
	failed := l.compareAll(ctx, due)
	admitted := false
	for _, p := range due {
		if err := failed[p.family]; err != nil {
			l.failed(ctx, p, err)
			continue
		}
		admitted = admitted || errors.Is(p.err, kvstore.ErrNotPermitted)
		// Never later than the audit that was promised.
		p.retry, p.err = l.o.Retry, nil
		p.at = now.Add(time.Duration((1 - l.o.Rand()/4) * float64(l.o.Audit)))
		if !p.complete {
			p.complete, l.listAt = true, now.Add(l.spread())
			l.changed = append(l.changed, "")
		}
	}
	l.settle()
	if admitted {
		l.subscribeAgain(ctx)
	}
}

// subscribeAgain reconnects, so that the server accepts all subscriptions: with its
// earlier permissions the node was denied some, and a server that reloads its
// configuration does not accept them later.
func (l *loop) subscribeAgain(ctx context.Context) {
	l.o.Log.InfoContext(ctx, "permissions extended, reconnecting")
	if err := l.store.Conn().ForceReconnect(); err != nil {
		l.o.Log.WarnContext(ctx, "cannot reconnect", "error", err)
	}
}

// settle updates Sync by the state of the families.
func (l *loop) settle() {
	var known []string
	var failed []error
	for _, p := range l.parts {
		if p.complete {
			known = append(known, p.family)
		}
		if p.err != nil {
			failed = append(failed, p.err)
		}
	}
	l.update(func(s *model.Sync) {
		s.Known, s.Err = known, nil
		switch {
		case len(failed) > 0:
			s.Err = allOf(failed)
		case len(known) == len(l.parts):
			s.At = l.o.Now()
		}
	})
}

// allOf joins errors; one that several families have appears once.
func allOf(errs []error) error {
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	if len(errs) == 1 {
		return errs[0]
	}

	return errors.Join(errs...)
}

// failed plans another try, later each time. Only what is new is worth a warning.
func (l *loop) failed(ctx context.Context, p *part, err error) {
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, kvstore.ErrNotPermitted) {
		groups := l.o.Groups
		err = fmt.Errorf("%s: %w (give the node what `%s` prints)", p.family, err, joined("muster fleet permissions "+l.o.Node, " --groups ", strings.Join(groups, ",")))
	}
	level := slog.LevelDebug
	if p.err == nil || errors.Is(err, kvstore.ErrNotPermitted) && p.err.Error() != err.Error() {
		level = slog.LevelWarn
	}
	p.err = err
	l.o.Log.Log(ctx, level, "cannot read assignments, will retry", "node", l.o.Node, "family", p.family, "in", p.retry, "error", err)
	p.at = time.Now().Add(time.Duration((0.5 + l.o.Rand()/2) * float64(p.retry)))
	p.retry = min(2*p.retry, kvstore.MaxRetry*l.o.Retry)
}

// joined returns a text with what follows it, where anything does.
func joined(text, by, more string) string {
	if more == "" {
		return text
	}

	return text + by + more
}

// flush wakes with the keys that changed, if any or if something else is worth
// it. The empty key stands for the first time that everything is known.
func (l *loop) flush() {
	errs := l.errors()
	if len(l.changed) == 0 && errs == l.reported {
		return
	}
	slices.Sort(l.changed)
	keys := slices.DeleteFunc(slices.Compact(l.changed), func(k string) bool { return k == "" })
	l.changed, l.reported = nil, errs
	l.wake(keys)
}

// errors returns the errors in Sync, and what is kept.
func (l *loop) errors() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return fmt.Sprint(l.sync.Err, l.sync.Kept, l.sync.Invalid)
}
