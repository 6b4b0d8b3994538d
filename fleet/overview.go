package fleet

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/model"
)

// Overview returns the statuses of all assignments on each node, by name and key, and
// behind them what it runs without an assignment: one that ended just now, or the
// bucket was recreated. A node whose state cannot be read has none.
func Overview(nodes []model.Node, entries []model.Entry) [][]RolloutStatus {
	assigned, byFamily := map[string]bool{}, map[string][]named{}
	for i, e := range entries {
		assigned[e.Key] = true
		if t, name, err := ParseKey(e.Key); err == nil {
			byFamily[t.String()] = append(byFamily[t.String()], named{name, &entries[i]})
		}
	}
	out := make([][]RolloutStatus, len(nodes))
	for i, n := range nodes {
		out[i] = []RolloutStatus{}
		if n.Unreadable != "" {
			continue
		}
		v := newView(n)
		var all []named
		for family := range v.places {
			all = append(all, byFamily[family]...)
		}
		slices.SortFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.Key, b.Key)) })
		out[i] = make([]RolloutStatus, 0, len(all))
		for len(all) > 0 {
			var same []model.Entry
			for _, e := range all {
				if e.name != all[0].name {
					break
				}
				same = append(same, *e.Entry)
			}
			all = all[len(same):]
			statuses := Rollout{Entries: same}.statusesOf(v)
			slices.SortFunc(statuses, func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })
			out[i] = append(out[i], statuses...)
		}
		out[i] = append(out[i], unassigned(n, assigned)...)
	}

	return out
}

// named is an assignment with its name.
type named struct {
	name string
	*model.Entry
}

// NeverSeen returns the status of each assignment to a node that is not among the known ones,
// in the order of the entries.
func NeverSeen(nodes []model.Node, entries []model.Entry) []RolloutStatus {
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Node] = true
	}
	var out []RolloutStatus
	for _, e := range entries {
		if t, _, err := ParseKey(e.Key); err == nil && t.Node != "" && !known[t.Node] {
			out = append(out, RolloutStatus{Node: t.Node, Key: e.Key, Status: StatusUnreachable, Desired: e.Revision, Reason: "never seen; is an agent running under this name?"})
		}
	}

	return out
}

// unassigned returns what a node runs without an assignment, by key.
func unassigned(n model.Node, assigned map[string]bool) []RolloutStatus {
	var out []RolloutStatus
	for key, m := range n.Manifests {
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
	slices.SortFunc(out, func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })

	return out
}
