package fleetcmd

import (
	"fmt"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// notes are the remarks during a wait: that nodes are unreachable or paused, and that only such nodes remain. Each is
// printed once.
type notes struct {
	timeout         time.Duration
	some, onlyThose bool
}

// next returns what to say by the statuses of a poll, empty for nothing.
func (n *notes) next(statuses []fleet.RolloutStatus) string {
	away := byStatus(statuses, fleet.StatusUnreachable, fleet.StatusPaused)
	if away == "" || n.timeout <= 0 {
		return ""
	}
	switch only := remainder(statuses); {
	case only != "" && !n.onlyThose:
		n.some, n.onlyThose = true, true
		return fmt.Sprintf("only %s nodes remain: %s, waiting for at most %s; ctrl-C ends it", only, away, n.timeout)
	case !n.some:
		n.some = true
		return away + ", waiting for all"
	default:
		return ""
	}
}
