package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// A paused node counts as paused unless its data is outdated; waiting commands report it.
func TestPausedNodes(t *testing.T) {
	t.Parallel()
	entries := []model.Entry{{Key: "group.all.motd", Revision: 2}, {Key: "group.all.old", Revision: 1}}
	node := func(change func(*model.Node)) model.Node {
		n := model.Node{NodeState: model.NodeState{Node: "web01", Paused: &model.Paused{By: "ann", From: "group.all.pause"}, Manifests: map[string]model.ManifestState{
			"group.all.motd": {Revision: 2, Counts: model.Counts{}},
			"group.all.old":  {Revision: 1, Outcome: model.OutcomeNoop},
		}}}
		change(&n)
		return n
	}
	for want, n := range map[fleet.Status]model.Node{
		fleet.StatusPaused:      node(func(*model.Node) {}),
		fleet.StatusUnreachable: node(func(n *model.Node) { n.Silent = true }),
		fleet.StatusStopped:     node(func(n *model.Node) { n.Event = model.NodeStopped }),
		fleet.StatusPending:     node(func(n *model.Node) { n.Paused = nil }),
	} {
		statuses := fleet.NewAssigned(entries).Statuses(n)
		if got := fleet.NodeStatus(n, statuses); got != want {
			t.Errorf("the status is %s, want %s", got, want)
		}
		if want != fleet.StatusPaused {
			continue
		}
		if why := fleet.WhyNot(n, statuses); why != "paused by ann" {
			t.Errorf("the reason is %q", why)
		}
		if s := statuses[0]; s.Status != fleet.StatusPending || !strings.HasPrefix(s.Reason, "paused without end by ann; ") {
			t.Errorf("what waits is %+v", s)
		}
		if s := statuses[1]; s.Status != fleet.StatusUpToDate || s.Outcome != model.OutcomeNoop {
			t.Errorf("what was done before is %+v", s)
		}
	}
	if _, err := targets.Compile(`state == "paused"`); err != nil {
		t.Error(err)
	}
}

// A paused node does not run the version that it only accepted.
func TestPausedNodesRunWhatRanLast(t *testing.T) {
	t.Parallel()
	entries := []model.Entry{{Key: "group.all.motd", Revision: 8}, {Key: "group.all.new", Revision: 9}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := model.Node{NodeState: model.NodeState{Node: "web01", Paused: &model.Paused{By: "ann"}, Manifests: map[string]model.ManifestState{
		"group.all.motd": {Revision: 8, Ran: &model.RanRevision{Revision: 6, Outcome: model.OutcomeStable, At: at}},
		"group.all.new":  {Revision: 9, Ran: &model.RanRevision{}},
		"group.all.gone": {Revision: 5, Ran: &model.RanRevision{Revision: 4, Outcome: model.OutcomeStable, At: at}},
	}}}
	for _, away := range []bool{false, true} {
		n.Silent = away
		var got []string
		for _, s := range fleet.NewAssigned(entries).Statuses(n) {
			got = append(got, fmt.Sprint(s.Key, " ", s.Current, " of ", s.Desired, " ", s.Outcome, " ", s.At.Equal(at)))
		}
		if want := "group.all.motd 6 of 8 stable true; group.all.new 0 of 9  false; group.all.gone 4 of 0 stable true"; strings.Join(got, "; ") != want {
			t.Errorf("away %t: %s", away, strings.Join(got, "; "))
		}
	}
}
