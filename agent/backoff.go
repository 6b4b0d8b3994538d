package agent

import (
	"math/rand/v2"
	"time"
)

// The waits between tries of what may pass.
const (
	backoffFirst = time.Second
	backoffMost  = 5 * time.Minute
)

// jitter is by how much of it an interval is longer or shorter.
const jitter = 0.1

// backoff counts tries. The zero value has none.
type backoff struct{ tries int }

// next gives the wait before another try: doubled each time, and spread by half
// so that a fleet does not try in step.
func (b *backoff) next() time.Duration {
	d := backoffFirst << min(b.tries, 20)
	b.tries++

	return spread(min(d, backoffMost), 0.5)
}

// reset is for a success.
func (b *backoff) reset() { b.tries = 0 }

// spread gives d, more or less by at most a part of it.
func spread(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 + part*(2*rand.Float64()-1)))
}
