// Package sparse logs what others can cause as often as they like.
package sparse

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Of each event, at most this many lines are logged within a while.
const (
	most  = 10
	while = 10 * time.Minute
)

// Log logs ten lines of each event in ten minutes, and counts the others; the next
// line has how many these were, as left_out. The zero value is ready to use. It may be
// used by several goroutines.
type Log struct {
	mu     sync.Mutex
	events map[string]*event
	// now is the clock of a test.
	now func() time.Time
}

// event is what was logged of one.
type event struct {
	since   time.Time
	lines   int
	leftOut int
}

// Log logs an event, which is one of the program's own words and nothing that
// others choose, and reports whether it did.
func (l *Log) Log(ctx context.Context, to *slog.Logger, level slog.Level, name string, args ...any) bool {
	leftOut, due := l.note(name)
	if !due {
		return false
	}
	if leftOut > 0 {
		args = append(args, "left_out", leftOut)
	}
	to.Log(ctx, level, name, args...)

	return true
}

// note counts an event and reports whether it is logged, and how many were not
// before it.
func (l *Log) note(name string) (leftOut int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	if l.events == nil {
		l.events = map[string]*event{}
	}
	e := l.events[name]
	if e == nil {
		e = &event{since: now()}
		l.events[name] = e
	}
	if now().Sub(e.since) >= while {
		leftOut = e.leftOut
		*e = event{since: now()}
	}
	if e.lines == most {
		e.leftOut++
		return 0, false
	}
	e.lines++

	return leftOut, true
}
