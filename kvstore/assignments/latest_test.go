package assignments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/assignments"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestLatestHasWhatWasRemoved: the revisions of all keys by time, also those that one key displaced by its many
// revisions from the last numbers.
func TestLatestHasWhatWasRemoved(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if all, more, err := store.Latest(t.Context(), 10); err != nil || more || len(all) != 0 {
		t.Fatalf("of an empty bucket: %v, %t, %v", all, more, err)
	}
	put := func(key string) uint64 {
		t.Helper()
		revision, err := assignments.New(store.Store).By("anna@desk").Put(t.Context(), key, []byte("a: "+strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	put("group.web.gone")
	removed, err := assignments.New(store.Store).By("bob@desk").Delete(t.Context(), "group.web.gone")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), kvstore.NewMsg(kvstore.KVSubject(store.Names().Manifests(), "stray"), []byte("x"))); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		put("node.web01.busy")
	}
	all, more, err := store.Latest(t.Context(), 19)
	if err != nil || more || len(all) != 19 {
		t.Fatalf("%d revisions, %t, %v", len(all), more, err)
	}
	var got []string
	for _, e := range all[15:] {
		got = append(got, fmt.Sprint(e.Key, " ", e.By, " ", e.Deleted, " ", e.Invalid))
		if len(e.Value) > 0 {
			t.Errorf("%s has its value", e.Key)
		}
	}
	if want := "[node.web01.busy anna@desk false false stray  false true group.web.gone bob@desk true false group.web.gone anna@desk false false]"; fmt.Sprint(got) != want || all[17].Revision != removed {
		t.Errorf("the oldest are %s, want %s", got, want)
	}
	if all, more, err = store.Latest(t.Context(), 18); err != nil || !more || len(all) != 18 || !all[17].Deleted {
		t.Errorf("%d of 19 revisions, %t, %v", len(all), more, err)
	}
}
