package fleet

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Overview returns the statuses of all assignments on each node, by name and key, and
// behind them what it runs without an assignment: one that ended just now, or the
// bucket was recreated. A node whose state cannot be read has none.
func Overview(nodes []model.Node, entries []model.Entry) [][]RolloutStatus {
	assigned, byName := map[string]bool{}, map[string][]model.Entry{}
	for _, e := range entries {
		assigned[e.Key] = true
		if _, name, err := ParseKey(e.Key); err == nil {
			byName[name] = append(byName[name], e)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	out := make([][]RolloutStatus, len(nodes))
	for i, n := range nodes {
		out[i] = []RolloutStatus{}
		if n.Unreadable != "" {
			continue
		}
		v := newView(n)
		for _, name := range names {
			statuses := Rollout{Entries: byName[name]}.statusesOf(v)
			slices.SortFunc(statuses, func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })
			out[i] = append(out[i], statuses...)
		}
		out[i] = append(out[i], unassigned(n, assigned)...)
	}

	return out
}

// unassigned returns what a node runs without an assignment, by key.
func unassigned(n model.Node, assigned map[string]bool) []RolloutStatus {
	var out []RolloutStatus
	for _, key := range slices.Sorted(maps.Keys(n.Manifests)) {
		m := n.Manifests[key]
		if m.Revision == 0 || assigned[key] {
			continue
		}
		reason := "runs, but is not assigned"
		if n.Stopped() {
			reason = "ran, but is not assigned"
		}
		if m.Late != "" {
			reason += ": " + late(m)
		}
		out = append(out, RolloutStatus{Node: n.Node, Key: key, Status: StatusUnassigned, Current: m.Revision, Outcome: m.Outcome, At: m.At, Reason: reason})
	}

	return out
}
