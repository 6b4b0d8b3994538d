package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The log writes at most maxLines lines of an event per logInterval.
const (
	maxLines    = 10
	logInterval = 10 * time.Minute
)

// RateLimitedLog writes at most ten log lines of each event in ten minutes and counts the dropped
// lines. The next line carries their number as left_out. Use it for events that another party can
// cause at any rate. The zero value is ready to use; it is safe for concurrent use.
type RateLimitedLog struct {
	mu     sync.Mutex
	events map[string]*loggedEvent
	// now replaces the clock in tests.
	now func() time.Time
}

type loggedEvent struct {
	since   time.Time
	lines   int
	leftOut int
}

// Log writes an event to the log, and reports whether it did. The name of the event must be a
// constant of the program.
func (l *RateLimitedLog) Log(ctx context.Context, to *slog.Logger, level slog.Level, name string, args ...any) bool {
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

// note counts an event. It reports whether the event is due, and how many lines were dropped before it.
func (l *RateLimitedLog) note(name string) (leftOut int, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	if l.events == nil {
		l.events = map[string]*loggedEvent{}
	}
	e := l.events[name]
	if e == nil {
		e = &loggedEvent{since: now()}
		l.events[name] = e
	}
	if now().Sub(e.since) >= logInterval {
		leftOut = e.leftOut
		*e = loggedEvent{since: now()}
	}
	if e.lines == maxLines {
		e.leftOut++
		return 0, false
	}
	e.lines++

	return leftOut, true
}
