package waitcmd

import (
	"fmt"
	"slices"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
)

const (
	// maxFailures is how many failures have a line of their own while others are waited for; further ones are counted.
	maxFailures = 20
	// maxReason is how many characters of a reason such a line has; the table at the end has all.
	maxReason = 200
)

// failures are what somebody who waits should know of nodes that fail or reject, as they do. Each is said once.
type failures struct {
	told map[statusOf]bool
	// counted is how many there were when they were counted last.
	counted int
}

// statusOf is an assignment on a node.
type statusOf struct{ node, key string }

// next returns the lines to say by the statuses of a poll. There are none where nothing is waited for: then
// the result follows.
func (f *failures) next(statuses []fleet.RolloutStatus) []string {
	if !slices.ContainsFunc(statuses, isWaitedFor) {
		return nil
	}
	if f.told == nil {
		f.told = map[statusOf]bool{}
	}
	var lines []string
	for _, s := range statuses {
		id := statusOf{s.Node, s.Key}
		if s.Status != fleet.StatusFailed && s.Status != fleet.StatusRejected || f.told[id] {
			continue
		}
		if f.told[id] = true; len(f.told) <= maxFailures {
			lines = append(lines, fmt.Sprintf("%s %s: %s", s.Node, s.Status, print.Cut(print.OneLine(s.Reason), maxReason)))
		}
	}
	// Twice as many as before, so that the lines are few however many nodes there are.
	if n := len(f.told); n > maxFailures && n >= 2*f.counted {
		f.counted = n
		lines = append(lines, byStatus(statuses, fleet.StatusFailed, fleet.StatusRejected)+", waiting for the others")
	}

	return lines
}

// isWaitedFor reports whether a status may change without another push.
func isWaitedFor(s fleet.RolloutStatus) bool { return !s.Done() && s.Status != fleet.StatusRejected }
