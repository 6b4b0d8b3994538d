package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/musterfleet/muster/model"
)

// chance makes the random choices of a node. The goroutine of the runs owns it.
type chance struct{ *rand.Rand }

// between returns a random duration.
func (c chance) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.Int64N(int64(most-least)+1))
}

// agentInterval is the interval of runs of agents and simulated nodes.
const agentInterval = 5 * time.Minute

// timers are the times of the next spontaneous events of a node.
type timers struct {
	chance
	kind               Kind
	run, drift, health time.Time
}

// next returns the time of the next event.
func (t *timers) next() time.Time {
	if t.run.IsZero() {
		t.run = time.Now().Add(t.between(agentInterval/2, agentInterval))
	}
	switch {
	case t.drift.IsZero() && t.kind == KindDrifting:
		t.drift = time.Now().Add(t.between(15*time.Second, time.Minute))
	case t.drift.IsZero() && t.kind == KindFlapping:
		t.drift = time.Now().Add(t.between(3*time.Second, 6*time.Second))
	case t.health.IsZero() && t.kind == KindUnhealthy:
		t.health = time.Now().Add(t.between(20*time.Second, time.Minute))
	}

	return model.EarlierNonZero(model.EarlierNonZero(t.run, t.drift), t.health)
}

// isDue reports whether a timer is over, and restarts it.
func isDue(at *time.Time) bool {
	due := !at.IsZero() && !time.Now().Before(*at)
	if due {
		*at = time.Time{}
	}

	return due
}
