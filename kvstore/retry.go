package kvstore

import (
	"context"
	"time"
)

// maxRetry is how many times the first pause the pauses between failures grow to.
const MaxRetry = 30

// pause waits for d, or until the context ends and gives its error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// wholeSeconds rounds up, because the server refuses anything else.
func WholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}
