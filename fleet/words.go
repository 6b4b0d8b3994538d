package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Statuses of nodes only.
const (
	// StatusOK means that the node has no problem.
	StatusOK Status = "ok"
	// StatusNoManifest means that no manifest applies to the node.
	StatusNoManifest Status = "no-manifest"
	// StatusStopped means that the agent of the node was shut down.
	StatusStopped Status = "stopped"
	// StatusPaused means that operators paused the node: it observes and changes nothing.
	StatusPaused Status = "paused"
)

// Absent returns the status of a node without current data: unreadable, stopped or unreachable. It is empty
// for a node that was seen recently.
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

// NodeStatuses are the statuses of a node, in order of precedence.
func NodeStatuses() []Status {
	return []Status{StatusUnreadable, StatusStopped, StatusUnreachable, StatusPaused, StatusFailed, StatusRejected, StatusPending, StatusNoManifest, StatusOK}
}

// NodeStatus returns the status of a node: absent, paused, or the worst status of its manifests, see
// Assigned.Statuses.
func NodeStatus(n model.Node, manifests []RolloutStatus) Status {
	if absent := Absent(n); absent != "" {
		return absent
	}
	if n.Paused != nil {
		return StatusPaused
	}
	order := NodeStatuses()
	worst, applies := len(order), false
	for _, s := range manifests {
		applies = applies || s.Applies()
		if at := slices.Index(order, s.Status); at >= 0 {
			worst = min(worst, at)
		}
	}
	switch {
	case worst < len(order):
		return order[worst]
	case applies:
		return StatusOK
	default:
		return StatusNoManifest
	}
}

// WhyNot returns the reason why a node is not OK, from its statuses. It is empty if the node is
// OK.
func WhyNot(n model.Node, manifests []RolloutStatus) string {
	status := NodeStatus(n, manifests)
	switch status {
	case StatusOK, StatusNoManifest:
		return ""
	case StatusUnreadable:
		return WhyUnreadable(n)
	case StatusStopped, StatusUnreachable:
		return absence(&n)
	case StatusPaused:
		return Shorten(n.Paused.String())
	}
	text, more := "", 0
	for _, s := range manifests {
		switch {
		case s.Status != status:
		case text != "":
			more++
		case strings.HasPrefix(s.Reason, s.Key+":"): // like errors with a position
			text = s.Reason
		default:
			text = s.Key + ": " + s.Reason
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and %d more manifests", more)
	}

	return text
}
