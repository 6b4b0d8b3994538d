package fleet_test

import (
	"reflect"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// TestRejections: the nodes that rejected a revision, and the nodes that would not accept their current one
// again.
func TestRejections(t *testing.T) {
	const key = "group.web.motd"
	node := func(name string, m model.ManifestState) model.Node {
		return model.Node{NodeState: model.NodeState{Node: name, Manifests: map[string]model.ManifestState{key: m}}}
	}
	nodes := []model.Node{
		node("fine", model.ManifestState{Revision: 3}),
		node("rejected", model.ManifestState{Revision: 2, Seen: 3, Late: "refused: not signed"}),
		node("earlier", model.ManifestState{Revision: 1, Seen: 2, Late: "refused: not signed"}),
		node("waits", model.ManifestState{Revision: 2, Seen: 3, Late: "away"}),
		node("in force", model.ManifestState{Revision: 3, Late: "refused: older"}),
		{NodeState: model.NodeState{Node: "other"}},
	}
	want := []fleet.Rejection{{Node: "rejected", Reason: "not signed"}, {Node: "in force", Reason: "older"}}
	if got := fleet.Rejections(model.Entry{Key: key, Revision: 3}, nodes); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	unassigned := fleet.NewAssigned(nil).Statuses(nodes[4])
	if len(unassigned) != 1 || unassigned[0].Reason != "runs, but is not assigned: rejected: older" {
		t.Errorf("%+v", unassigned)
	}
	stopped := node("stopped", model.ManifestState{Revision: 3})
	stopped.Event = model.NodeStopped
	if unassigned := fleet.NewAssigned(nil).Statuses(stopped); len(unassigned) != 1 || unassigned[0].Reason != "ran, but is not assigned" {
		t.Errorf("%+v", unassigned)
	}
}
