package view_test

import (
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
)

// TestMergeIsInOrder: changes of two buckets are one list by time, the oldest first.
func TestMergeIsInOrder(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	assigned := []view.ControlChange{
		{Key: "group.web.b", Revision: 9, Time: at(5), Kind: view.ChangeRemoved, By: "anna"},
		{Key: "stray", Revision: 7, Time: at(1), Kind: view.ChangeRefused, Text: "its key is wrong"},
	}
	written := []view.ControlChange{{Key: "node.a.pause", Revision: 3, Time: at(3), Kind: view.ChangePaused, Signed: true}, {Key: "node.a.labels", Revision: 2, Time: at(1)}}
	got := view.MergeChanges(assigned, written)
	want := []string{"node.a.labels", "stray", "node.a.pause", "group.web.b"}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, c := range got {
		if c.Key != want[i] {
			t.Errorf("%d: got %s, want %s", i, c.Key, want[i])
		}
	}
	if got[1].Text != "its key is wrong" || got[3].By != "anna" || !got[2].Signed || written[0].Key != "node.a.pause" {
		t.Errorf("got %+v", got)
	}
}
