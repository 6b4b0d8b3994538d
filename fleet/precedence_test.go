package fleet_test

import (
	"reflect"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

func TestPrecedenceOf(t *testing.T) {
	t.Parallel()
	in := func(name string, groups ...string) model.Node {
		return model.Node{NodeState: model.NodeState{Node: name, Groups: groups}}
	}
	nodes := []model.Node{in("a", "canary", "web"), in("b", "web", "canary"), in("c", "web"), in("d", "db")}
	others := []model.Entry{{Key: "group.web.app"}, {Key: "node.a.app"}, {Key: "group.all.app"}, {Key: "group.web.other"}, {Key: "group.db.app"}, {Key: "group.canary.app"}}
	want := []fleet.Precedence{
		{Other: "group.web.app", Wins: true, Nodes: []string{"a"}},
		{Other: "group.web.app", Wins: false, Nodes: []string{"b"}},
		{Other: "node.a.app", Wins: false, Nodes: []string{"a"}},
		{Other: "group.all.app", Wins: true, Nodes: []string{"a", "b"}},
	}
	if got := fleet.PrecedenceOf("group.canary.app", others, nodes); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestUnreadGroupDoesNotWin: a group that a node cannot read overrides nothing there, except by an
// assignment that the node read before.
func TestUnreadGroupDoesNotWin(t *testing.T) {
	t.Parallel()
	const canary, web = "group.canary.app", "group.web.app"
	entries := []model.Entry{{Key: canary, Revision: 2}, {Key: web, Revision: 3}}
	unread := node("a", []string{"canary", "web"}, map[string]model.ManifestState{web: runs(3, model.OutcomeStable)})
	unread.UnreadGroups, unread.Message = []string{"canary"}, "group.canary is not permitted"
	before := node("b", []string{"canary", "web"}, map[string]model.ManifestState{canary: runs(1, model.OutcomeStable)})
	before.UnreadGroups = []string{"canary"}
	nodes := []model.Node{unread, before}
	got := map[string]fleet.RolloutStatus{}
	for _, s := range (fleet.Rollout{Entries: entries, Keys: []string{canary, web}}).Statuses(nodes) {
		got[s.Node+" "+s.Key] = s
	}
	for of, want := range map[string]fleet.Status{
		"a " + canary: fleet.StatusPending, "a " + web: fleet.StatusUpToDate,
		"b " + canary: fleet.StatusPending, "b " + web: fleet.StatusOverridden,
	} {
		if got[of].Status != want {
			t.Errorf("%s: got %+v, want %s", of, got[of], want)
		}
	}
	if reason, want := got["a "+canary].Reason, "not acknowledged yet: group.canary is not permitted"; reason != want {
		t.Errorf("the reason is %q, want %q", reason, want)
	}
	if all := fleet.NewAssigned(entries).Statuses(nodes[0]); len(all) != 2 {
		t.Errorf("the overview has %+v", all)
	}
	want := []fleet.Precedence{{Other: canary, Nodes: []string{"b"}}}
	if got := fleet.PrecedenceOf(web, entries, nodes); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
