package fleet_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

func TestParseKey(t *testing.T) {
	for key, want := range map[string]struct {
		target fleet.Target
		name   string
	}{
		"node.web01.motd": {fleet.Target{Node: "web01"}, "motd"},
		"group.web.motd":  {fleet.Target{Group: "web"}, "motd"},
		"group.all.motd":  {fleet.Target{Group: "all"}, "motd"},
	} {
		target, name, err := fleet.ParseKey(key)
		if err != nil || target != want.target || name != want.name {
			t.Errorf("%s is %v %s %v", key, target, name, err)
		}
		if back := target.Key(name); back != key {
			t.Errorf("%s became %s", key, back)
		}
	}
	for _, key := range []string{"", "motd", "node.motd", "node.web01.", "node..motd", ".web01.motd", "host.web01.motd", "node.web.01.motd", "node.web01.motd."} {
		_, _, err := fleet.ParseKey(key)
		if !errors.Is(err, model.ErrInvalidName) || !strings.Contains(err.Error(), "node.<node>.<name>") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestTargetsOnceInOrder(t *testing.T) {
	got := fleet.Targets([]string{"b", "a", "b"}, []string{"web", "all"}, true)
	want := []fleet.Target{{Node: "b"}, {Node: "a"}, {Group: "web"}, {Group: "all"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestTargetIncludes(t *testing.T) {
	n := model.NodeState{Node: "web01", Groups: []string{"web"}}
	for target, want := range map[fleet.Target]bool{
		{Node: "web01"}: true, {Node: "web02"}: false, {Group: "web"}: true, {Group: "db"}: false, {Group: "all"}: true, {Group: "web01"}: false, {Node: "web"}: false,
	} {
		if got := target.Includes(n); got != want {
			t.Errorf("%v includes web01: %v", target, got)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, key := range []string{"node.web01.motd", "group.all._index", "node..", "..", "node.a.b.c", ""} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		target, name, err := fleet.ParseKey(key)
		if err == nil && target.Key(name) != key {
			t.Errorf("%q became %q", key, target.Key(name))
		}
	})
}
