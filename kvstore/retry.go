package kvstore

import (
	"context"
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
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// UntilCurrent calls read until it is done, with growing waits, because a replica
// that lags returns less than what is known. With last it is not called again.
func UntilCurrent(ctx context.Context, read func(last bool) (done bool, err error)) error {
	const tries = 6
	wait := 20 * time.Millisecond
	for try := 1; ; try++ {
		if done, err := read(try == tries); done || err != nil {
			return err
		}
		if err := Pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}
