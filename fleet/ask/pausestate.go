package ask

import (
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// PauseSettling is the time after a change during which a node may still report the previous rejection.
const PauseSettling = 2 * time.Second

// PauseChange is a written pause or its removal.
type PauseChange struct {
	Key string
	// Pause is the written pause, nil for a removal.
	Pause *model.Pause
	// Revision is the revision of the pause, 0 if unknown.
	Revision uint64
}

// PauseStatus is the state of one node for a pause change.
type PauseStatus struct {
	// State is pending, done, failed or unreachable. An unreachable node applies the change when it reconnects.
	State State
	Text  string
	// Unsigned is set if the change failed because of a missing signature.
	Unsigned bool
}

// PausePending returns the status of a node that has not confirmed the change.
func PausePending() PauseStatus {
	return PauseStatus{State: StatePending, Text: "written, not confirmed yet"}
}

// Status implements Change.
func (c PauseChange) Status(n model.Node, known, settled bool) PauseStatus {
	if away, is := PauseUnreachable(n, known); is {
		return away
	}
	if c.inEffect(n) {
		return PauseStatus{State: StateDone, Text: c.text(n)}
	}
	if why := c.Rejection(n); settled && why != "" {
		return PauseStatus{State: StateFailed, Text: "refused: " + why, Unsigned: strings.Contains(why, signed.ErrUnsigned.Error())}
	}

	return PausePending()
}

// PauseUnreachable returns the status of a node that cannot apply a change now. The second result is
// false if the node is reachable.
func PauseUnreachable(n model.Node, known bool) (away PauseStatus, is bool) {
	const later = "; takes effect when it is back"
	why := ""
	switch {
	case n.Unreadable != "":
		why = "its state cannot be read"
	case !known || n.Silent:
		why = "unreachable" + later
	case n.Stopped():
		why = "stopped" + later
	default:
		return PauseStatus{}, false
	}

	return PauseStatus{State: StateUnreachable, Text: "written, not confirmed: " + why}, true
}

// inEffect reports whether the change is in effect on a node.
func (c PauseChange) inEffect(n model.Node) bool {
	revision, stated := n.PausedBy[c.Key]
	isFrom := n.Paused != nil && n.Paused.From == c.Key
	switch {
	case c.Pause == nil:
		return !stated && !isFrom
	case n.Paused == nil:
		return false
	case stated && c.Revision > 0:
		return revision >= c.Revision
	case isFrom:
		return n.Paused.At.Equal(c.Pause.At)
	case n.PausedBy != nil:
		return stated
	}

	// An older agent states one pause only. It confirms this one if the stated pause does not end sooner.
	return n.Paused.Until.IsZero() || !c.Pause.Until.IsZero() && !n.Paused.Until.Before(c.Pause.Until)
}

// text describes a node on which the change is in effect.
func (c PauseChange) text(n model.Node) string {
	switch {
	case c.Pause == nil && n.Paused == nil:
		return "resumed"
	case c.Pause == nil:
		return "still paused by " + n.Paused.From
	case n.Paused.From != c.Key:
		return "paused, also by " + n.Paused.From
	}

	return "paused"
}

// Rejection implements Change.
func (c PauseChange) Rejection(n model.Node) string {
	if len(n.RejectedControl) > 0 {
		return n.RejectedControl[c.Key]
	}
	// Older agents report it only in the message.
	_, why, _ := strings.Cut(n.Message, "rejected: "+c.Key+": ")

	return why
}
