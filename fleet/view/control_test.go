package view_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestControl: what operators wrote in a line, also what nodes do not use.
func TestControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, value string
		deleted    bool
		want       string
	}{
		{"node.a.pause", `{"protocol":"io.muster.v1.pause","by":"ann","reason":"disk"}`, false, "paused by ann: disk"},
		{"node.a.pause", `{"protocol":"io.muster.v1.pause","reason":"disk"}`, false, "paused: disk"},
		{"node.a.pause", `{"protocol":"io.muster.v1.pause"}`, false, "paused"},
		{"group.g.pause", "", true, "resumed"},
		{"node.a.labels", `{"protocol":"io.muster.v1.labels","labels":{"b":"2","a":"1"}}`, false, "labels a=1, b=2"},
		{"node.a.labels", `{"protocol":"io.muster.v1.labels","labels":{}}`, false, "no labels"},
		{"node.a.groups", `{"protocol":"io.muster.v1.groups","groups":[]}`, false, "no groups"},
		{"node.a.labels", "", true, "labels removed"},
		{"node.a.groups", `{"protocol":"io.muster.v1.groups","groups":["g","h"]}`, false, "groups g, h"},
		{"node.a.groups", `{"protocol":"x"}`, false, "not used: "},
		{"node.a.other", "", false, "no key that muster knows"},
	} {
		change := view.ControlChanges([]model.Entry{{Key: c.key, Value: []byte(c.value), Deleted: c.deleted}}, "")[0]
		if got := change.Text; change.Signed || got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.key, c.value, got, c.want)
		}
	}
	if got := view.ControlChanges([]model.Entry{{Refused: "is forged"}}, "")[0]; got.Text != "not used: it is forged" || got.Signed {
		t.Errorf("refused: %+v", got)
	}
}
