package kvstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestAuditHasRemovals: it returns the revisions of all keys by time, also if one key has most of the
// last sequences.
func TestAuditHasRemovals(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if all, more, err := store.Audit(t.Context(), 10); err != nil || more || len(all) != 0 {
		t.Fatalf("of an empty bucket: %v, %t, %v", all, more, err)
	}
	put := func(key string) uint64 {
		t.Helper()
		revision, err := kvstore.NewAssignments(store.Store).By("anna@desk").Put(t.Context(), key, []byte("a: "+strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	put("group.web.gone")
	removed, err := kvstore.NewAssignments(store.Store).By("bob@desk").Delete(t.Context(), "group.web.gone", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Publish(t.Context(), kvstore.NewMsg(kvstore.KVSubject(store.Names.Manifests, "stray"), []byte("x"))); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		put("node.web01.busy")
	}
	all, more, err := store.Audit(t.Context(), 19)
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
	if all, more, err = store.Audit(t.Context(), 18); err != nil || !more || len(all) != 18 {
		t.Errorf("%d of 19 revisions, %t, %v", len(all), more, err)
	}
}

// TestLatestIgnoresFamilies: Latest returns the newest revisions, also if all belong to one group.
func TestLatestIgnoresFamilies(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	assignments := kvstore.NewAssignments(store.Store)
	for _, key := range []string{"node.a.old", "node.b.old", "node.c.old", "group.web.a", "group.web.b", "group.web.c", "group.web.d"} {
		if _, err := assignments.Put(t.Context(), key, []byte("muster: {}")); err != nil {
			t.Fatal(err)
		}
	}
	all, more, err := assignments.Latest(t.Context(), 4)
	if err != nil || !more || len(all) != 4 || all[0].Key != "group.web.d" || all[3].Key != "group.web.a" {
		t.Errorf("%v, %t, %v", all, more, err)
	}
}

// TestAuditBehindAFlood: many assignments to one group, or many manifests, hide no assignments to others. The
// result reports that there are more.
func TestAuditBehindAFlood(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if all, more, err := store.Audit(t.Context(), 10); err != nil || more || len(all) != 0 {
		t.Fatalf("of an empty bucket: %v, %t, %v", all, more, err)
	}
	put := func(key, by string) {
		t.Helper()
		if _, err := kvstore.NewAssignments(store.Store).By(by).Put(t.Context(), key, []byte("a: "+strings.Repeat("x", 100))); err != nil {
			t.Fatal(err)
		}
	}
	put("group.db.app", "anna")
	put("node.web01.app", "anna")
	const most = 20
	of := func(all []model.Entry, by string) (n int) {
		for _, e := range all {
			if e.By == by {
				n++
			}
		}
		return n
	}
	for i := range 5 * most {
		put(fmt.Sprintf("group.web.m%d", i), "eve")
	}
	all, more, err := store.Audit(t.Context(), most)
	if err != nil || !more || len(all) != most || of(all, "anna") != 2 || of(all, "eve") != 18 || all[0].Key != "group.web.m99" || all[19].Key != "group.db.app" {
		t.Errorf("%d revisions, %d of them of anna, %t, %v", len(all), of(all, "anna"), more, err)
	}
	for i := range all[1:] {
		if all[i+1].Revision >= all[i].Revision || len(all[i].Value) > 0 {
			t.Errorf("%d after %d", all[i+1].Revision, all[i].Revision)
		}
	}
	// Four others that have their shares fill it.
	for i := range most {
		put(fmt.Sprintf("group.g%d.app", i%4), "bob")
	}
	if all, more, err = store.Audit(t.Context(), most); err != nil || !more || of(all, "bob") != most {
		t.Errorf("%d revisions, %d of them of bob, %t, %v", len(all), of(all, "bob"), more, err)
	}
	// The search is bounded.
	for i := range 10*most + 10 {
		put(fmt.Sprintf("group.web.n%d", i), "eve")
	}
	if all, more, err = store.Audit(t.Context(), most); err != nil || !more || of(all, "eve") != most {
		t.Errorf("%d revisions, %d of them of eve, %t, %v", len(all), of(all, "eve"), more, err)
	}
}
