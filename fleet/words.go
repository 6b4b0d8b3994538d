package fleet

import "github.com/musterfleet/muster/model"

// The statuses that only nodes have.
const (
	// StatusOK is a node on which nothing is wrong.
	StatusOK Status = "ok"
	// StatusStopped is a node whose agent was shut down.
	StatusStopped Status = "stopped"
)

// Absent returns why nothing current is known of a node: unreadable, stopped or
// unreachable; empty for a node that was seen lately.
func Absent(n model.Node) Status {
	switch {
	case n.Unreadable != "":
		return StatusUnreadable
	case n.Stopped():
		return StatusStopped
	case n.Silent:
		return StatusUnreachable
	default:
		return ""
	}
}

// nodeStatuses are the statuses of a node as a whole, the one that hides all others first.
func nodeStatuses() []Status {
	return []Status{StatusUnreadable, StatusStopped, StatusUnreachable, StatusFailed, StatusRejected, StatusPending, StatusOK}
}

// NodeStatus returns the status of a node as a whole: why it is absent, else the worst of
// the statuses of its manifests, see Overview: failed, rejected, pending or ok.
func NodeStatus(n model.Node, manifests []RolloutStatus) Status {
	if absent := Absent(n); absent != "" {
		return absent
	}
	found := map[Status]bool{}
	for _, s := range manifests {
		found[s.Status] = true
	}
	for _, s := range nodeStatuses() {
		if found[s] {
			return s
		}
	}

	return StatusOK
}
