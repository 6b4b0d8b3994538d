package fleet_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// TestCostOfALargeState: what a command allocates is linear in what one node writes about
// itself and in what is assigned; not parallel, because it counts.
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
		"an overview": func(n model.Node, entries []model.Entry) { fleet.Overview([]model.Node{n}, entries) },
		"a push": func(n model.Node, _ []model.Entry) {
			fleet.Push{Name: "motd", Targets: []fleet.Target{{Group: "g1"}, {Group: model.GroupAll}}}.InForceBeside([]model.Node{n})
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
