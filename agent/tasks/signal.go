package tasks

import (
	"context"
	"time"
)

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
