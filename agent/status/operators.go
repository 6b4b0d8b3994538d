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

// UpdateJoining updates the groups that the node joins, before and after SetRead: the state contains a new
// group only after the node tried to read its assignments. next must not call this node.
func (n *Node) UpdateJoining(next func(joining []string) []string) {
	n.update(func() bool {
		groups := next(n.joining)
		other := !slices.Equal(n.joining, groups)
		n.joining = groups

		return other
	})
}

// SetRead records the result of reading families of assignments: known were read since the agent started,
// failed could not be read at the last attempt.
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

// maxRejected limits the rejected control documents in the state.
const maxRejected = 50

// SetControl records the active control documents, the reasons for rejected ones by key, and the reason why
// the bucket cannot be read, empty if it can. The caller must not change them later.
func (n *Node) SetControl(paused *model.Paused, by map[string]uint64, labels, rejected map[string]string, unread string) {
	n.update(func() bool {
		same := (paused == nil) == (n.paused == nil) && (paused == nil || *paused == *n.paused)
		shown, text := firstRejected(rejected), rejectedText(rejected)
		other := !same || !maps.Equal(by, n.pausedBy) || !maps.Equal(labels, n.labels) || !maps.Equal(shown, n.rejected) || text != n.problems.control || unread != n.problems.unread
		n.paused, n.pausedBy, n.labels, n.rejected, n.problems.control, n.problems.unread = paused, by, labels, shown, text, unread

		return other
	})
}

// firstRejected returns the first rejected documents by key with shortened reasons, nil for none.
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

// rejectedText describes the first rejected documents with shortened reasons, empty for none.
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
