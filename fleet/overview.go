package fleet

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Overview returns the statuses of all assignments on each node, see Assigned.Statuses.
func Overview(nodes []model.Node, entries []model.Entry) [][]RolloutStatus {
	a := NewAssigned(entries)
	out := make([][]RolloutStatus, len(nodes))
	for i, n := range nodes {
		out[i] = a.Statuses(n)
	}

	return out
}

// unassigned returns what a node runs without an assignment, by key.
func (a *Assigned) unassigned(n *model.Node) []RolloutStatus {
	var out []RolloutStatus
	for key := range n.Manifests {
		if a.byKey[key] != nil {
			continue
		}
		m := n.Manifests[key]
		if m.Revision == 0 {
			continue
		}
		reason := "runs, but is not assigned"
		if n.Stopped() {
			reason = "ran, but is not assigned"
		}
		if m.Late != "" {
			reason += ": " + late(&m)
		}
		last := m.Last()
		out = append(out, RolloutStatus{Node: n.Node, Key: key, Status: StatusUnassigned, Current: last.Revision, Outcome: last.Outcome, At: last.At, Reason: reason})
	}
	slices.SortFunc(out, func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })

	return out
}
