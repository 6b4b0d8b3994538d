package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestChanges: the change and the known author of each revision. Any part of them selects it.
func TestChanges(t *testing.T) {
	t.Parallel()
	value := func(text string) []byte { return []byte(text) }
	all := []model.Entry{
		{Key: "node.web01.pause", Revision: 9, Deleted: true, By: "bob"},
		{Key: "group.db.pause", Revision: 8, Value: value(`{"protocol":"io.muster.v1.pause","by":"anna","reason":"disk"}`)},
		{Key: "node.web01.labels", Revision: 7, By: "carl", Value: value(`{"protocol":"io.muster.v1.labels","labels":{"rack":"a3"}}`)},
		{Key: "node.web01.groups", Revision: 6, Deleted: true},
		{Key: "node.web01.pause", Revision: 5, Refused: "is forged"},
	}
	for search, want := range map[string]string{
		"":     `9 resumed "bob" resumed|8 paused "anna" paused by anna: disk|7 written "carl" labels rack=a3|6 removed "" groups removed|5 refused "" not used: it is forged`,
		"ANNA": `8 paused "anna" paused by anna: disk`,
		"rack": `7 written "carl" labels rack=a3`,
		"zzz":  "",
	} {
		var got []string
		for _, c := range view.ControlChanges(all, search) {
			got = append(got, fmt.Sprintf("%d %s %q %s", c.Revision, c.Kind, c.By, c.Text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %s", search, strings.Join(got, "|"))
		}
	}
}
