package fleet_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

// TestCostOfALargeState: allocations are linear in the size of a node's state and of the assignments. The
// test counts, so it is not parallel.
func TestCostOfALargeState(t *testing.T) {
	lying := func(size int) (n model.Node, entries []model.Entry) {
		var groups []string
		manifests := map[string]model.ManifestState{}
		for i := range size {
			groups = append(groups, fmt.Sprintf("g%d", i))
			// Each was seen and is skipped, another of the name runs from the last group.
			manifests[fmt.Sprintf("group.g%d.motd", i)] = model.ManifestState{Revision: 1, Seen: 2}
			manifests[fmt.Sprintf("group.g%d.n%d", size-1, i)] = model.ManifestState{Revision: 1}
			entries = append(entries, model.Entry{Key: fmt.Sprintf("group.g%d.motd", i), Revision: 2}, model.Entry{Key: fmt.Sprintf("group.all.n%d", i), Revision: 1})
		}
		return node("a", groups, manifests), entries
	}
	for name, do := range map[string]func(n model.Node, entries []model.Entry){
		"a rollout": func(n model.Node, entries []model.Entry) {
			fleet.Rollout{Entries: entries}.Statuses([]model.Node{n})
		},
		"an overview": func(n model.Node, entries []model.Entry) { fleet.NewAssigned(entries).Statuses(n) },
		"a push": func(n model.Node, _ []model.Entry) {
			assign.Push{Name: "motd", Targets: []fleet.Target{{Group: "g1"}, {Group: model.GroupAll}}}.InForceBeside([]model.Node{n})
		},
	} {
		cost := func(size int) float64 {
			n, entries := lying(size)
			return testing.AllocsPerRun(1, func() { do(n, entries) })
		}
		if small, large := cost(200), cost(800); large > 6*small {
			t.Errorf("%s: %.0f allocations for a state, %.0f for one four times as large", name, small, large)
		}
	}
}

// TestNodeStatus: a problem of the whole node wins over its manifests, and the worst manifest over the rest.
func TestNodeStatus(t *testing.T) {
	t.Parallel()
	status := func(all ...fleet.Status) (out []fleet.RolloutStatus) {
		for _, s := range all {
			out = append(out, fleet.RolloutStatus{Status: s})
		}
		return out
	}
	plain := node("a", nil, nil)
	stopped, silent, unreadable := plain, plain, plain
	stopped.Event, stopped.Silent, silent.Silent, unreadable.Unreadable = model.NodeStopped, true, true, "garbage"
	for _, c := range []struct {
		n    model.Node
		all  []fleet.RolloutStatus
		want fleet.Status
	}{
		{plain, nil, fleet.StatusNoManifest},
		{plain, status(fleet.StatusNotApplicable, fleet.StatusOverridden), fleet.StatusNoManifest},
		{plain, status(fleet.StatusNotApplicable, fleet.StatusOverridden, fleet.StatusUpToDate), fleet.StatusOK},
		{plain, status(fleet.StatusUpToDate, fleet.StatusUnassigned), fleet.StatusOK},
		{plain, status(fleet.StatusUnassigned, fleet.StatusPending), fleet.StatusPending},
		{plain, status(fleet.StatusRejected, fleet.StatusPending), fleet.StatusRejected},
		{plain, status(fleet.StatusRejected, fleet.StatusFailed, fleet.StatusUpToDate), fleet.StatusFailed},
		{stopped, status(fleet.StatusFailed), fleet.StatusStopped},
		{silent, status(fleet.StatusFailed), fleet.StatusUnreachable},
		{unreadable, nil, fleet.StatusUnreadable},
	} {
		if got := fleet.NodeStatus(c.n, c.all); got != c.want {
			t.Errorf("%v: got %s, want %s", c.all, got, c.want)
		}
	}
}
