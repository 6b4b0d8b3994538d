package kvstore_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/testing/kvtest"
)

// TestLost tests that keys without a value and without a removal are lost.
func TestLost(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	const assigned, removed, lost, invalid = "group.web.assigned", "group.web.removed", "group.web.lost", "group.web.*"
	for _, key := range []string{assigned, removed} {
		if _, err := store.Put(t.Context(), key, []byte("resources: []")); err != nil {
			t.Fatal(err)
		}
	}
	revision, err := store.Delete(t.Context(), removed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ran := range []uint64{revision - 1, revision + 1} {
		got, err := store.Lost(t.Context(), map[string]uint64{assigned: ran, removed: ran, lost: ran, invalid: ran})
		if err != nil || fmt.Sprint(got) != "map[group.web.lost:true]" {
			t.Errorf("%v, %v", got, err)
		}
	}
}
