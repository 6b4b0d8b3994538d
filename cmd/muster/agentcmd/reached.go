package agentcmd

import (
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore/connect"
)

// reached is when NATS could be reached last.
type reached struct {
	mu   sync.Mutex
	now  bool
	lost time.Time
}

// status takes over a change of the connection.
func (r *reached) status(s connect.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now && !s.Connected {
		r.lost = time.Now()
	}
	r.now = s.Connected
}

// last returns whether NATS can be reached, and when that was so last: now, when the
// connection was lost, or zero for never.
func (r *reached) last() (connected bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now {
		return true, time.Now()
	}

	return false, r.lost
}
