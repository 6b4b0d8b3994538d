package kvstore

import (
	"context"
	"math"
	"time"
)

// MaxRetry is the factor from the first to the longest pause between retries.
const MaxRetry = 30

// Pause waits for d, or returns the error of the context.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WholeSeconds rounds up to whole seconds, at least one. The server rejects other TTLs.
func WholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (min(d, math.MaxInt64-time.Second) + time.Second - 1).Truncate(time.Second))
}

// LagTries limits the reads of a replica that may lag.
const LagTries = 6

// LagWait returns the wait for a lagging replica after a number of retries.
func LagWait(again int) time.Duration { return 20 * time.Millisecond << again }

// UntilCurrent calls read with growing waits until it is done, because a lagging replica returns old
// data. last marks the final call.
func UntilCurrent(ctx context.Context, read func(last bool) (done bool, err error)) error {
	for again := 0; ; again++ {
		if done, err := read(again == LagTries-1); done || err != nil {
			return err
		}
		if err := Pause(ctx, LagWait(again)); err != nil {
			return err
		}
	}
}
