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
