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
