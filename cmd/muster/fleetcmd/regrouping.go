package fleetcmd

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// joinSettling is how long a node must report a group before the change counts as done. NATS may still deny
// the subscription in that time: older agents report the group before they subscribe.
const joinSettling = time.Second

// regrouping is a change of a node's groups. It is not safe for concurrent use.
type regrouping struct {
	key          string
	joined, left []string
	// order lists the groups that must come first; empty if the order does not change.
	order []string
	// since is when the node first reported all joined groups, zero before that.
	since time.Time
}

// Status implements change.
func (r *regrouping) Status(n model.Node, known, settled bool) ask.PauseStatus {
	if away, is := ask.PauseUnreachable(n, known); is {
		return away
	}
	isIn := func(group string) bool { return slices.Contains(n.Groups, group) }
	isOut := func(group string) bool { return !isIn(group) }
	isJoined, why := !slices.ContainsFunc(r.joined, isOut), r.Rejection(n)
	switch still := slices.IndexFunc(r.left, isIn); {
	case isJoined && slices.ContainsFunc(r.joined, func(g string) bool { return isDenied(n.Message, g) }):
		return ask.PauseStatus{State: ask.StateFailed, Text: "not in effect: " + n.Message}
	case settled && why != "" && (!isJoined || still >= 0):
		return ask.PauseStatus{State: ask.StateFailed, Text: "refused: " + why}
	case still >= 0:
		return ask.PauseStatus{State: ask.StatePending, Text: "written, but still in group " + r.left[still] + ": check the node's agent.yaml"}
	case !r.isOrdered(n):
		return ask.PausePending()
	case len(r.joined) == 0:
		return ask.PauseStatus{State: ask.StateDone, Text: "in effect"}
	case isJoined && r.since.IsZero():
		r.since = time.Now()
	case isJoined && time.Since(r.since) >= joinSettling:
		return ask.PauseStatus{State: ask.StateDone, Text: "in effect"}
	}

	return ask.PausePending()
}

// isOrdered reports whether the groups of a node start with the wanted order.
func (r *regrouping) isOrdered(n model.Node) bool {
	want := slices.DeleteFunc(slices.Clone(r.order), func(g string) bool { return !slices.Contains(n.Groups, g) })

	return slices.Equal(n.Groups[:len(want)], want)
}

// Rejection implements change.
func (r *regrouping) Rejection(n model.Node) string {
	return ask.PauseChange{Key: r.key}.Rejection(n)
}

// isDenied reports whether a message says that NATS denies a group to the node.
func isDenied(message, group string) bool {
	family := model.GroupFamily(group)

	return strings.Contains(message, model.ErrNotPermitted.Error()) && (strings.Contains(message, family+".") || strings.Contains(message, family+":") || strings.Contains(message, family+" is "))
}
