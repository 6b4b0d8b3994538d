package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

import ()

// UpdateJoining takes over which groups the node comes into, before it is in them, by those that it did: the state has
// each once NATS gave the node what is assigned to it, or did not, see SetRead. next must not call this node.
func (n *Node) UpdateJoining(next func(joining []string) []string) {
	n.update(func() bool {
		groups := next(n.joining)
		other := !slices.Equal(n.joining, groups)
		n.joining = groups

		return other
	})
}

// SetRead takes over the result of reading families of assignments: known were read since the agent started, failed
// could not be read at the last attempt.
func (n *Node) SetRead(known, failed []string) {
	var unread []string
	for _, family := range failed {
		if group, isGroup := strings.CutPrefix(family, model.GroupFamily("")); isGroup {
			unread = append(unread, group)
		}
	}
	n.update(func() bool {
		before, other := len(n.joining), !slices.Equal(n.unread, unread)
		n.joining = slices.DeleteFunc(slices.Clone(n.joining), func(group string) bool {
			family := model.GroupFamily(group)
			return slices.Contains(known, family) || slices.Contains(failed, family)
		})
		n.unread = unread

		return other || len(n.joining) != before
	})
}

// maxRejected bounds the rejected control documents in the state.
const maxRejected = 50

// SetControl takes over what operators wrote about the node, why some of that is not in force, by
// key, and why nothing is known of it, empty for nothing. None is changed afterwards.
func (n *Node) SetControl(paused *model.Paused, by map[string]uint64, labels, rejected map[string]string, unread string) {
	n.update(func() bool {
		same := (paused == nil) == (n.paused == nil) && (paused == nil || *paused == *n.paused)
		shown, text := firstRejected(rejected), rejectedText(rejected)
		other := !same || !maps.Equal(by, n.pausedBy) || !maps.Equal(labels, n.labels) || !maps.Equal(shown, n.rejected) || text != n.problems.control || unread != n.problems.unread
		n.paused, n.pausedBy, n.labels, n.rejected, n.problems.control, n.problems.unread = paused, by, labels, shown, text, unread

		return other
	})
}

// firstRejected returns the first rejected documents by the order of their keys, each reason bounded;
// nil for none.
func firstRejected(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(all))
	out := map[string]string{}
	for _, key := range keys[:min(len(keys), maxRejected)] {
		out[key] = bounds.Text(all[key])
	}

	return out
}

// rejectedText describes documents that were rejected, of many the first ones, each bounded; empty
// for none.
func rejectedText(all map[string]string) string {
	const most = 3
	keys := slices.Sorted(maps.Keys(all))
	var out []string
	for _, key := range keys[:min(len(keys), most)] {
		out = append(out, bounds.Text("rejected: "+key+": "+all[key]))
	}
	if len(keys) > most {
		out = append(out, fmt.Sprintf("and %d more", len(keys)-most))
	}

	return strings.Join(out, "; ")
}
