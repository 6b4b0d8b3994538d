package assign_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

func TestInForceBeside(t *testing.T) {
	active := func(keys ...string) map[string]model.ManifestState {
		out := map[string]model.ManifestState{"group.all.seen": {Seen: 3}}
		for _, key := range keys {
			out[key] = runs(1, model.OutcomeStable)
		}
		return out
	}
	nodes := []model.Node{
		node("a", []string{"web"}, active("group.web.motd", "group.web.site", "group.all.base")),
		node("b", []string{"web", "db"}, active("node.b.motd", "group.db.site", "group.db.own")),
		node("c", nil, active("group.all.base", "node.c.private")),
	}
	for name, c := range map[string]struct {
		push assign.Push
		want string
	}{
		"a node":          {assign.Push{Name: "new", Targets: []fleet.Target{{Node: "c"}}}, "group.all.base node.c.private"},
		"a group":         {assign.Push{Name: "new", Targets: []fleet.Target{{Group: "db"}}}, "group.db.own group.db.site node.b.motd"},
		"its own name":    {assign.Push{Name: "site", Targets: []fleet.Target{{Node: "a"}}}, "group.all.base group.web.motd"},
		"overridden on b": {assign.Push{Name: "motd", Targets: []fleet.Target{{Group: "web"}}}, "group.all.base group.web.site"},
		"overrides":       {assign.Push{Name: "own", Targets: []fleet.Target{{Group: "web"}, {Node: "none"}}}, "group.all.base group.db.site group.web.motd group.web.site node.b.motd"},
		"nobody":          {assign.Push{Name: "new", Targets: []fleet.Target{{Node: "z"}, {Group: "z"}}}, ""},
	} {
		var keys []string
		for _, met := range c.push.InForceBeside(nodes) {
			keys = append(keys, met.Key)
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A node that claims a group is named, but proves nothing about manifests of others.
func TestInForceBesideNamesTheNodes(t *testing.T) {
	nodes := []model.Node{
		node("b", []string{"db"}, map[string]model.ManifestState{"group.db.own": runs(1, model.OutcomeStable)}),
		node("web01", []string{"web", "db"}, map[string]model.ManifestState{
			"group.db.own": runs(1, model.OutcomeStable), "group.web.site": runs(1, model.OutcomeStable),
			"node.b.private": runs(1, model.OutcomeStable), "group.cache.redis": runs(1, model.OutcomeStable),
		}),
	}
	got := assign.Push{Name: "new", Targets: []fleet.Target{{Group: "db"}}}.InForceBeside(nodes)
	want := []assign.InForce{{Key: "group.db.own", Nodes: []string{"b", "web01"}}, {Key: "group.web.site", Nodes: []string{"web01"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func node(id string, groups []string, manifests map[string]model.ManifestState) model.Node {
	return model.Node{NodeState: model.NodeState{Node: id, Groups: groups, Manifests: manifests}}
}

func runs(revision uint64, outcome model.Outcome) model.ManifestState {
	return model.ManifestState{Revision: revision, Outcome: outcome}
}
