package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/model"
)

// Summary returns the overview of the nodes. It marks nodes with an earlier version than the given one.
func (a *inventory) Summary(version string, now time.Time) Summary {
	all, entries := a.now()
	nodes := make([]*Node, len(all))
	for i, s := range all {
		nodes[i] = &s.Node
	}

	return summaryFrom(nodes, func(i int, key string) model.ManifestState { return all[i].manifest(key) }, entries, version, now)
}

// Assigned returns the assignments.
func (a *inventory) Assigned() *fleet.Assigned {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.entries
}

// Assignments returns a page of the statuses of a manifest, the worst first, and their number.
func (a *inventory) Assignments(q ManifestQuery) (rows []Assignment, matching int) {
	nodes, entries := a.now()
	found := assignmentsOf(q, nodes, entries)
	rows = []Assignment{}
	for _, one := range pageOf(found, q.Offset, q.Limit) {
		rows = append(rows, *one)
	}

	return rows, len(found)
}

// assignmentsOf returns the statuses of a manifest, the worst first.
func assignmentsOf(q ManifestQuery, nodes []*nodeState, entries *fleet.Assigned) []*Assignment {
	var out []*Assignment
	add := func(a *Assignment) {
		if model.IsKeyOf(a.Key, q.Name) && (q.Status == "" && a.Applies() || q.Status == a.Status) {
			out = append(out, a)
		}
	}
	known := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		known[n.name()] = true
		for i := range n.Statuses {
			add(&n.Statuses[i])
		}
	}
	for _, s := range entries.NeverSeen(func(node string) bool { return known[node] }) {
		add(&Assignment{RolloutStatus: s, Assigned: entries.Assigned(s.Key)})
	}
	slices.SortStableFunc(out, func(a, b *Assignment) int {
		return cmp.Or(cmp.Compare(assignmentSeverity(a.Status), assignmentSeverity(b.Status)), cmp.Compare(a.Node, b.Node))
	})

	return out
}

// severity orders the statuses of an assignment, the worst first.
func assignmentSeverity(s fleet.Status) int {
	order := [...]fleet.Status{
		fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusUnassigned,
		fleet.StatusUpToDate, fleet.StatusNotApplicable, fleet.StatusOverridden,
	}

	return slices.Index(order[:], s)
}
