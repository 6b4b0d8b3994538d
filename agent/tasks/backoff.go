package tasks

import (
	"math/rand/v2"
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
