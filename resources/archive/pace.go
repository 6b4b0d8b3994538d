package archive

import (
	"fmt"
	"time"
)

const (
	// leastRate is the minimum rate in bytes per second that counts as progress.
	leastRate = 1 << 10
	// stretch is the amount of repeated content that counts as progress.
	stretch = 64 << 10
)

// pace measures the wait for a server. Time between waits does not count, such as writing to a slow disk.
type pace struct {
	// timeout is the longest wait for progress: leastRate times that long.
	timeout time.Duration
	// waited is the time without progress up to since, when the current wait began.
	waited time.Duration
	since  time.Time
	// fresh and again count new and repeated bytes since the last progress.
	fresh, again int64
}

func (p *pace) begin() { p.since = time.Now() }

func (p *pace) end() { p.waited += time.Since(p.since) }

// count records n bytes; fresh of them are new.
func (p *pace) count(n, fresh int64) {
	p.fresh += fresh
	p.again += n - fresh
	if float64(p.fresh) >= leastRate*p.timeout.Seconds() || p.again >= stretch {
		p.fresh, p.again, p.waited, p.since = 0, 0, 0, time.Now()
	}
}

// left is the remaining time without progress.
func (p *pace) left() time.Duration { return p.timeout - p.waited - time.Since(p.since) }

// patience returns how long a connection may stall. The rest of the time is left for a new connection.
func (p *pace) patience() time.Duration { return min(p.timeout/2, p.left()) }

// check returns an error after the timeout. cause is the error that broke the connection, nil while the
// server still sends.
func (p *pace) check(cause error) error {
	switch {
	case p.left() > 0:
		return nil
	case cause == nil || p.fresh > 0:
		return fmt.Errorf("timed out after %s with less than %d KiB a second", p.timeout, leastRate>>10)
	default:
		return fmt.Errorf("timed out after %s without progress: %w", p.timeout, cause)
	}
}
