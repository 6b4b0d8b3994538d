package controlcmd

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/pausestate"
	"github.com/musterfleet/muster/fleet/request"
	"github.com/musterfleet/muster/kvstore/denial"
	"github.com/musterfleet/muster/model"
)

// joinSettling is how long after it joined a group a node may take to find out that it is not permitted it.
const joinSettling = time.Second

// joining is that a node comes into groups. One goroutine uses it.
type joining struct {
	key    string
	groups []string
	// since is since when the node is in all of them, zero while it is not.
	since time.Time
}

// Status implements change.
func (j *joining) Status(n model.Node, known, settled bool) pausestate.Status {
	if away, is := pausestate.Unreachable(n, known); is {
		return away
	}
	isOut := func(group string) bool { return !slices.Contains(n.Groups, group) }
	why := j.Rejection(n)
	switch isJoined := !slices.ContainsFunc(j.groups, isOut); {
	case isJoined && slices.ContainsFunc(j.groups, func(g string) bool { return isDenied(n.Message, g) }):
		return pausestate.Status{State: request.StateFailed, Text: "not in effect: " + n.Message}
	case isJoined && j.since.IsZero():
		j.since = time.Now()
	case isJoined && time.Since(j.since) >= joinSettling:
		return pausestate.Status{State: request.StateDone, Text: "in effect"}
	case !isJoined && settled && why != "":
		return pausestate.Status{State: request.StateFailed, Text: "refused: " + why}
	}

	return pausestate.Pending()
}

// Rejection implements change.
func (j *joining) Rejection(n model.Node) string {
	return pausestate.Change{Key: j.key}.Rejection(n)
}

// isDenied reports whether a message of a node is that NATS does not permit it a group.
func isDenied(message, group string) bool {
	family := model.GroupFamily(group)

	return strings.Contains(message, denial.ErrNotPermitted.Error()) && (strings.Contains(message, family+".") || strings.Contains(message, family+":") || strings.Contains(message, family+" is "))
}
