package waitcmd

import (
	"fmt"
	"time"

	"github.com/musterfleet/muster/fleet"
)

// notes are what somebody who waits should know before the end: that nodes are unreachable, and that only these
// are left. Each is said once.
type notes struct {
	timeout         time.Duration
	some, onlyThose bool
}

// next returns what to say by the statuses of a poll, empty for nothing.
func (n *notes) next(statuses []fleet.RolloutStatus) string {
	t := fleet.TallyOf(statuses)
	if t.Unreachable == 0 || n.timeout <= 0 {
		return ""
	}
	unreachable := byStatus(statuses, fleet.StatusUnreachable)
	switch {
	case t.Pending+t.Unreadable == 0 && !n.onlyThose:
		n.some, n.onlyThose = true, true
		return fmt.Sprintf("only unreachable nodes remain: %s, waiting for at most %s; ctrl-C ends it", unreachable, n.timeout)
	case !n.some:
		n.some = true
		return unreachable + ", waiting for all"
	default:
		return ""
	}
}
