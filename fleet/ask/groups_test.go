package ask_test

import (
	"testing"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

// TestJoining: a node has joined once it is in the groups and does not say soon that NATS does not permit them.
func TestJoining(t *testing.T) {
	t.Parallel()
	const key = "node.web01.groups"
	in := func(message string, groups ...string) model.Node {
		return model.Node{NodeState: model.NodeState{Node: "web01", Groups: groups, Message: message}}
	}
	refuses := in("", "web")
	refuses.RejectedControl = map[string]string{key: "it is not signed"}
	const denied = "group.canary: read: not permitted to publish to $KV.MUSTER_MANIFESTS.group.canary.>"
	pending, failed := ask.StatePending, ask.StateFailed
	for name, c := range map[string]struct {
		node    model.Node
		unknown bool
		early   bool
		want    ask.State
	}{
		"not yet":                         {node: in("", "web"), want: pending},
		"in one of them":                  {node: in("", "canary"), want: pending},
		"in both":                         {node: in("", "canary", "next"), want: ask.StateDone},
		"not permitted":                   {node: in(denied, "canary", "next"), want: failed},
		"not permitted, as it is said":    {node: in("group.canary is not permitted: give the node what … (cut)", "canary", "next"), want: failed},
		"not permitted, of before":        {node: in(denied, "web"), want: pending},
		"another group is not permitted":  {node: in("group.canary2: read: not permitted", "canary", "next"), want: ask.StateDone},
		"something else about this group": {node: in("group.canary: no answer in time", "canary", "next"), want: ask.StateDone},
		"refuses it":                      {node: refuses, want: failed},
		"refused what was there before":   {node: refuses, early: true, want: pending},
		"unknown":                         {unknown: true, want: ask.StateUnreachable},
	} {
		j := ask.GroupsChange{ControlKey: key, Joined: []string{"canary", "next"}}
		if got := confirm(j, c.node, !c.unknown, c.early); got.State != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// TestLeaving: a node has left a group once its state does not have it any more, whatever else it is in.
func TestLeaving(t *testing.T) {
	t.Parallel()
	const key = "node.web01.groups"
	in := func(groups ...string) model.Node {
		return model.Node{NodeState: model.NodeState{Node: "web01", Groups: groups}}
	}
	refuses := in("web", "canary")
	refuses.RejectedControl = map[string]string{key: "it is not signed"}
	silent := in("web")
	silent.Silent = true
	for name, c := range map[string]struct {
		node   model.Node
		joined []string
		order  []string
		want   ask.State
	}{
		"still in it":                {node: in("web", "canary"), want: ask.StatePending},
		"out of it":                  {node: in("web"), want: ask.StateDone},
		"in another order":           {node: in("web", "edge"), order: []string{"edge", "web"}, want: ask.StatePending},
		"in the order":               {node: in("edge", "web"), order: []string{"edge", "gone", "web"}, want: ask.StateDone},
		"out of all":                 {node: in(), want: ask.StateDone},
		"out, and not yet in":        {node: in("web"), joined: []string{"next"}, want: ask.StatePending},
		"in, and not yet out":        {node: in("canary", "next"), joined: []string{"next"}, want: ask.StatePending},
		"out, and in":                {node: in("next"), joined: []string{"next"}, want: ask.StateDone},
		"refuses it":                 {node: refuses, want: ask.StateFailed},
		"unreachable, of whatever":   {node: silent, want: ask.StateUnreachable},
		"not in it, as another is":   {node: in("canary2"), want: ask.StateDone},
		"in another, left meanwhile": {node: in("old"), want: ask.StatePending},
	} {
		r := ask.GroupsChange{ControlKey: key, Joined: c.joined, Left: []string{"canary", "old"}, Order: c.order}
		if got := confirm(r, c.node, true, false); got.State != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
