package kvstore

import (
	"context"
	"math"
	"time"
)

// MaxRetry is the longest pause between failures, in first pauses.
const MaxRetry = 30

// Pause waits for d, or until the context ends and returns its error.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WholeSeconds rounds up, at least to one: the server refuses anything else.
func WholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (min(d, math.MaxInt64-time.Second) + time.Second - 1).Truncate(time.Second))
}

// LagTries is how often a replica that may lag is asked.
const LagTries = 6

// LagWait returns how long a replica that lags is given, after it was asked again a number
// of times.
func LagWait(again int) time.Duration { return 20 * time.Millisecond << again }

// UntilCurrent calls read until it is done, with growing waits, because a replica
// that lags returns less than what is known. With last it is not called again.
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
