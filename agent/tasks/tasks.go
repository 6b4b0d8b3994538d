// Package tasks has what the loops of an agent share: waits between tries,
// signals that wake a goroutine, and panics turned into errors.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// The waits between tries of a transient error.
const (
	firstWait   = time.Second
	longestWait = 5 * time.Minute
)

// Jitter is by how much of it an interval is longer or shorter.
const Jitter = 0.1

// Backoff counts tries. The zero value has none.
type Backoff struct{ tries int }

// Next returns the wait before another try: doubled each time, and spread by
// half so that a fleet does not try in step.
func (b *Backoff) Next() time.Duration {
	d := firstWait << min(b.tries, 20)
	b.tries++

	return Spread(min(d, longestWait), 0.5)
}

// Reset starts over after a success.
func (b *Backoff) Reset() { b.tries = 0 }

// Spread returns d, more or less by at most a part of it.
func Spread(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 + part*(2*rand.Float64()-1)))
}

// Guard runs f and turns a panic into an error, so that it ends one task and
// not the agent.
func Guard(log *slog.Logger, task string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("task panicked", "task", task, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic while %s: %v", task, v)
		}
	}()

	return f()
}

// Repeat runs f until ctx ends. It calls f again after a growing wait, or when sooner is notified, which may
// be nil.
func Repeat(ctx context.Context, log *slog.Logger, task string, sooner Signal, f func(context.Context) error) {
	var wait Backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := Guard(log, task, func() error { return f(ctx) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestWait {
			wait.Reset()
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		log.ErrorContext(ctx, "task failed, will retry", "task", task, "error", err)
		if Pause(ctx, wait.Next(), sooner) {
			wait.Reset()
		}
	}
}

// Signal wakes a goroutine; any number of notifications before it wakes are one.
type Signal chan struct{}

// NewSignal returns a signal without a pending notification.
func NewSignal() Signal { return make(Signal, 1) }

// Notify wakes the waiting goroutine, or the next one to wait. It does not block.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Pause waits for d, for the end of ctx, or for sooner, which may be nil. It
// reports whether sooner ended it.
func Pause(ctx context.Context, d time.Duration, sooner Signal) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	case <-sooner:
		return true
	}

	return false
}
