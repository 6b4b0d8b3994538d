package fleetcmd

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// joinSettling is how long after a node said that it is in a group it may find out that it is not permitted it: an agent
// says so once it tried to read what is assigned to the group, an older one before, and a subscription is denied at any time.
const joinSettling = time.Second

// regrouping is that a node comes into groups, and leaves others. One goroutine uses it.
type regrouping struct {
	key          string
	joined, left []string
	// order lists the groups that must win over the others; empty if the order does not change.
	order []string
	// since is since when the node is in all that it joined, zero while it is not.
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
		return ask.PauseStatus{State: ask.StatePending, Text: "written, and still in group " + r.left[still] + ": is it in the configuration of the node?"}
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

// isOrdered reports whether the groups of a node begin with the groups in order that it has.
func (r *regrouping) isOrdered(n model.Node) bool {
	want := slices.DeleteFunc(slices.Clone(r.order), func(g string) bool { return !slices.Contains(n.Groups, g) })

	return slices.Equal(n.Groups[:len(want)], want)
}

// Rejection implements change.
func (r *regrouping) Rejection(n model.Node) string {
	return ask.PauseChange{Key: r.key}.Rejection(n)
}

// isDenied reports whether a message of a node is that NATS does not permit it a group.
func isDenied(message, group string) bool {
	family := model.GroupFamily(group)

	return strings.Contains(message, model.ErrNotPermitted.Error()) && (strings.Contains(message, family+".") || strings.Contains(message, family+":") || strings.Contains(message, family+" is "))
}
