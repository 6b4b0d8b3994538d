package kvstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestHistory reads the revisions of some families, including deletions, with and without permission for consumers.
func TestHistory(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	bucket := kvstore.NewControl(g.Admin.Store)
	for _, key := range []string{"node.web01.labels", "node.web02.labels", "group.web.pause", "node.web01.labels"} {
		if _, err := bucket.Put(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bucket.Delete(t.Context(), "node.web01.labels", nil); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*kvtest.Store{"administrator": g.Admin, "viewer": kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))} {
		all, err := kvstore.NewControl(store.Store).History(t.Context(), "node.web01", "group.web")
		var got []string
		for _, e := range all {
			got = append(got, fmt.Sprint(e.Key, " ", e.Revision, " ", e.Deleted))
		}
		if want := "[node.web01.labels 1 false group.web.pause 3 false node.web01.labels 4 false node.web01.labels 5 true]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := bucket.History(t.Context(), "node.web.01"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("an invalid family: %v", err)
	}
}
