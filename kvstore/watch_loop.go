package kvstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// maxRetry is how many times the first pause the pauses between failures grow to.
const maxRetry = 30

// loop is one run of a watch: what it does next, and what only it may touch.
type loop struct {
	*Watch
	pending *pending
	wake    func([]string)

	// newest is the last message of each family when all of it was last read.
	newest map[string]mark
	// catchAt and listAt are when to compare with the bucket and to list it.
	catchAt, listAt time.Time
	retry           time.Duration
	// complete says that everything was known once.
	complete bool
	changed  []string
	// told is what Sync said to be wrong when the listener was last woken.
	told string
}

// mark is a stored message, told from every other by its time too: a bucket made
// anew counts from 1 again.
type mark struct {
	sequence uint64
	time     int64
}

func markOf(m message) mark { return mark{sequence: m.sequence, time: m.time.UnixNano()} }

func newLoop(w *Watch, p *pending, wake func([]string)) *loop {
	l := &loop{Watch: w, pending: p, wake: wake, newest: map[string]mark{}, catchAt: time.Now(), retry: w.o.Retry}
	l.told = l.wrong()

	return l
}

// next gives when there is something to do.
func (l *loop) next() time.Time {
	at := l.catchAt
	if l.complete && l.listAt.Before(at) {
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
	if !l.complete {
		l.catchAt = time.Now()
		return
	}
	if soon := time.Now().Add(l.spread()); soon.Before(l.catchAt) {
		l.catchAt = soon
	}
}

// step does what is due, and wakes whoever listens. An error other than that of
// a closed connection is kept in Sync and tried again later.
func (l *loop) step(ctx context.Context) error {
	now := time.Now()
	err := l.readDue(ctx, now)
	switch {
	case err != nil:
	case !l.catchAt.After(now):
		err = l.catchUp(ctx)
	case l.complete && !l.listAt.After(now):
		l.list(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.failed(ctx, err)
	}
	l.flush()

	return err
}

// readDue reads the keys that were announced and are due. Those it could not
// read wait for the next try.
func (l *loop) readDue(ctx context.Context, now time.Time) error {
	var failed error
	for key, sequence := range l.pending.take(now) {
		family, name, ok := SplitKey(key)
		if !ok || CheckName(name) != nil {
			continue
		}
		if failed == nil {
			failed = l.read(ctx, family, name, sequence)
		}
		if failed != nil {
			l.pending.add(key, sequence, now.Add(l.retry))
		}
	}

	return failed
}

// catchUp compares with the bucket and plans the next time.
func (l *loop) catchUp(ctx context.Context) error {
	if err := l.compareAll(ctx); err != nil {
		return err
	}
	now := time.Now()
	l.retry = l.o.Retry
	// Never later than the audit that was promised.
	l.catchAt = now.Add(time.Duration((1 - l.o.Rand()/4) * float64(l.o.Audit)))
	if !l.complete {
		l.complete, l.listAt = true, now.Add(l.spread())
		l.changed = append(l.changed, "")
	}
	l.update(func(s *Sync) { s.At, s.Err = l.o.Now(), nil })

	return nil
}

// failed plans another try, later each time. Only the first is worth a warning.
func (l *loop) failed(ctx context.Context, err error) {
	level := slog.LevelDebug
	l.update(func(s *Sync) {
		if s.Err == nil {
			level = slog.LevelWarn
		}
		s.Err = err
	})
	l.o.Log.Log(ctx, level, "assignments cannot be read, trying again", "node", l.o.Node, "in", l.retry, "error", err)
	l.catchAt = time.Now().Add(time.Duration((0.5 + l.o.Rand()/2) * float64(l.retry)))
	l.retry = min(2*l.retry, maxRetry*l.o.Retry)
}

// flush wakes with the keys that changed, if any or if something else is worth
// it. The empty key stands for the first time that everything is known.
func (l *loop) flush() {
	wrong := l.wrong()
	if len(l.changed) == 0 && wrong == l.told {
		return
	}
	slices.Sort(l.changed)
	keys := slices.DeleteFunc(slices.Compact(l.changed), func(k string) bool { return k == "" })
	l.changed, l.told = nil, wrong
	l.wake(keys)
}

// wrong says whether Sync knows of a failure, and what is kept.
func (l *loop) wrong() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return fmt.Sprint(l.sync.Err != nil, l.sync.Kept)
}
