package kvstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestRevisions returns the revisions of some families in order, with removals, also without permission to
// create consumers.
func TestRevisions(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	bucket := kvstore.NewAssignments(g.Admin.Store)
	for _, key := range []string{"node.web01.a", "group.db.a", "group.web.b", "node.web01.a"} {
		if _, err := bucket.Put(t.Context(), key, []byte("muster: {}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bucket.Delete(t.Context(), "group.web.b", nil); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*kvtest.Store{"administrator": g.Admin, "viewer": kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))} {
		var got []string
		for e, err := range kvstore.NewAssignments(store.Store).Revisions(t.Context(), "node.web01", "group.web") {
			if err != nil {
				t.Fatal(name, err)
			}
			got = append(got, fmt.Sprint(e.Key, " ", e.Revision, " ", e.Deleted, " ", len(e.Value)))
		}
		if want := "[node.web01.a 1 false 11 group.web.b 3 false 11 node.web01.a 4 false 11 group.web.b 5 true 0]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, store := range map[string]*kvtest.Store{"administrator": g.Admin, "viewer": kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))} {
		for revision, want := range map[uint64]string{1: "node.web01.a", 3: "group.web.b", 5: "group.web.b"} {
			if e, err := kvstore.NewAssignments(store.Store).Revision(t.Context(), revision); err != nil || e.Key != want || e.Revision != revision || e.Deleted != (revision == 5) {
				t.Errorf("%s: revision %d is %+v, %v", name, revision, e, err)
			}
		}
		for _, revision := range []uint64{0, 6, 1 << 40} {
			if _, err := kvstore.NewAssignments(store.Store).Revision(t.Context(), revision); !errors.Is(err, model.ErrNotFound) {
				t.Errorf("%s: revision %d: %v", name, revision, err)
			}
		}
	}
	for _, err := range bucket.Revisions(t.Context(), "node.web.01") {
		if !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("an invalid family: %v", err)
		}
	}
}
