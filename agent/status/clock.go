package status

import (
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// moved is the smallest change of the offset that Measured reports.
const moved = time.Second

// drift is the maximum relative drift of two clocks without a step: the kernel corrects each by at most 500
// ppm.
const drift = 1000

// Clock is the clock of a node. It is safe for concurrent use. Create it with NewClock.
type Clock struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu sync.Mutex
	// last is the best valid measurement. known means that there is one.
	last  measurement
	known bool
	// told is the offset at the last true result of Measured.
	told time.Duration
}

// measurement is the server's time at a reading of the monotonic clock, elapsed, with a maximum error,
// within.
type measurement struct {
	server          time.Time
	elapsed, within time.Duration
}

// after returns the server's time at a reading of the monotonic clock.
func (m measurement) after(elapsed time.Duration) measurement {
	passed := elapsed - m.elapsed

	return measurement{m.server.Add(passed), elapsed, m.within + passed.Abs()/drift}
}

// betterThan reports whether the newer measurement m replaces old: it is at least as exact now, or it shows
// that the server's time changed.
func (m measurement) betterThan(old measurement) bool {
	old = old.after(m.elapsed)

	return m.within <= old.within || m.server.Sub(old.server).Abs() > m.within+old.within
}

// System returns the clock of this machine.
func System() *Clock {
	began := time.Now()

	return NewClock(time.Now, func() time.Duration { return time.Since(began) })
}

// NewClock returns a clock. wall returns the time of day, which may be set at any time. elapsed returns the
// monotonic time since any start.
func NewClock(wall func() time.Time, elapsed func() time.Duration) *Clock {
	return &Clock{wall: wall, elapsed: elapsed}
}

// Elapsed returns the monotonic time, independent of the time of day.
func (c *Clock) Elapsed() time.Duration { return c.elapsed() }

// Measured records that the server's time was server at some time between two readings of Elapsed. It reports
// whether the offset has changed by at least a second since it last did: timers must then be computed again.
func (c *Clock) Measured(server time.Time, sent, received time.Duration) bool {
	half := (received - sent) / 2
	m := measurement{server, sent + half, half}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || m.betterThan(c.last) {
		c.last, c.known = m, true
	}
	own, now := c.now()
	offset := own.Sub(now.server)
	if (offset - c.told).Abs() < moved {
		return false
	}
	c.told = offset

	return true
}

// now returns the times of the node and of the server, equal while the server's is unknown.
func (c *Clock) now() (own time.Time, server measurement) {
	own = c.wall().Round(0)
	if !c.known {
		return own, measurement{server: own}
	}

	return own, c.last.after(c.elapsed())
}

// Times returns the times of the node's clock and of the server's clock, equal while the server's is unknown.
func (c *Clock) Times() (own, server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, m := c.now()

	return own, m.server
}

// Offset returns the difference between the clocks of the node and the server, zero while it is unknown.
func (c *Clock) Offset() model.ClockOffset {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, m := c.now()

	return model.ClockOffset{Offset: model.Offset(own.Sub(m.server)), Within: model.Duration(m.within)}
}

// Expired returns an error with both times if Until is zero or less, otherwise nil.
func (c *Clock) Expired(at time.Time, signed bool) error {
	if c.Until(at, signed) > 0 {
		return nil
	}
	own, server := c.Times()
	text := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }

	return fmt.Errorf("expired at %s: the node's clock is at %s, the server's clock at %s", text(at), text(own), text(server))
}

// Until returns the time until at, zero or less if it is over: by the server's clock, or by the node's clock
// while the server's is unknown. For a signed time the earlier result counts.
func (c *Clock) Until(at time.Time, signed bool) time.Duration {
	own, server := c.Times()
	left := at.Sub(server)
	if signed {
		left = min(left, at.Sub(own))
	}

	return left
}
