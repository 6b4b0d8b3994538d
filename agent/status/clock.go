package status

import (
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// moved is the change of the offset that Measured reports.
const moved = time.Second

// drift is the part by which two clocks may drift apart, and the kernel corrects one at
// most without a step: 500 ppm each.
const drift = 1000

// Clock is the time of a node. Its methods may be called from several goroutines. Make
// it with New.
type Clock struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu sync.Mutex
	// last is the best measurement that still counts, known that there is one.
	last  measurement
	known bool
	// told is the offset when Measured last returned true.
	told time.Duration
}

// measurement is what time it was at the server when the monotonic clock was at elapsed,
// give or take within.
type measurement struct {
	server          time.Time
	elapsed, within time.Duration
}

// after returns what time it is at the server when the monotonic clock is at elapsed.
func (m measurement) after(elapsed time.Duration) measurement {
	passed := elapsed - m.elapsed

	return measurement{m.server.Add(passed), elapsed, m.within + passed.Abs()/drift}
}

// betterThan reports whether m, the newer one, replaces old: it is as exact by now, or
// shows that the server's time is another one.
func (m measurement) betterThan(old measurement) bool {
	old = old.after(m.elapsed)

	return m.within <= old.within || m.server.Sub(old.server).Abs() > m.within+old.within
}

// System returns the clock of this machine.
func System() *Clock {
	began := time.Now()

	return NewClock(time.Now, func() time.Duration { return time.Since(began) })
}

// NewClock returns a clock that reads the time of day from wall, which may be set at any
// time, and from elapsed the time since some moment, which may not.
func NewClock(wall func() time.Time, elapsed func() time.Duration) *Clock {
	return &Clock{wall: wall, elapsed: elapsed}
}

// Elapsed returns the time since some moment, whatever becomes of the time of day.
func (c *Clock) Elapsed() time.Duration { return c.elapsed() }

// Measured takes over that it was server at the NATS server at some time between two
// readings of Elapsed. It reports whether the offset is another one than when it last
// did so, by a second at least: what waits for a time must compute its wait again.
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

// now returns the time of the node, and that of the server, the same while that is not
// known.
func (c *Clock) now() (own time.Time, server measurement) {
	own = c.wall().Round(0)
	if !c.known {
		return own, measurement{server: own}
	}

	return own, c.last.after(c.elapsed())
}

// Times returns what time it is by the clock of the node and by that of the server, the
// same while that is not known.
func (c *Clock) Times() (own, server time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, m := c.now()

	return own, m.server
}

// Offset returns how the clock of the node differs from the server's, zero while that is
// not known.
func (c *Clock) Offset() model.ClockOffset {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, m := c.now()

	return model.ClockOffset{Offset: model.Offset(own.Sub(m.server)), Within: model.Duration(m.within)}
}

// Expired returns an error with the times of both clocks once Until has reached zero, nil before.
func (c *Clock) Expired(at time.Time, signed bool) error {
	if c.Until(at, signed) > 0 {
		return nil
	}
	own, server := c.Times()
	text := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }

	return fmt.Errorf("expired at %s: the node's clock is at %s, the server's clock at %s", text(at), text(own), text(server))
}

// Until returns how long it is until a time, zero or less when that is over: by the
// server's clock, or while its time is not known by that of the node. Of what is signed
// the clock by which it is over first counts.
func (c *Clock) Until(at time.Time, signed bool) time.Duration {
	own, server := c.Times()
	left := at.Sub(server)
	if signed {
		left = min(left, at.Sub(own))
	}

	return left
}
