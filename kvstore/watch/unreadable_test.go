package watch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestHeadersThatCannotBeReadConcernOneKey: an operator of a group can store them. They delay no other
// assignment of the group, and the last good value of the key stays active.
func TestHeadersThatCannotBeReadConcernOneKey(t *testing.T) {
	t.Parallel()
	const block = "NATS/1.0\r\nfoo\r\n\r\n"
	for name, audit := range map[string]time.Duration{"announced": kvtest.Never, "by the audit": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			put := func(key, value string) {
				t.Helper()
				if _, err := store.Put(t.Context(), key, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			unreadable := func(w *kvtest.Watching, want ...string) {
				t.Helper()
				kvtest.Eventually(t, "keys that cannot be read", func() (bool, string) {
					_, s := w.Entries()
					return slices.Equal(s.Unreadable, want) && s.Err == nil && s.Complete(), fmt.Sprintf("%+v", s)
				})
			}
			put("group.all.app", "one")
			put("group.all.motd", "one")
			o := watch.Options{Node: "web01", Audit: audit, GroupJitter: time.Millisecond}
			w := kvtest.Watch(t, kvtest.Bind(t, srv, quiet()), o)
			w.Has(t, "group.all.app=one", "group.all.motd=one")
			srv.Raw(t, "$KV.MUSTER_MANIFESTS.group.all.app", block, "two")
			srv.Raw(t, "$KV.MUSTER_MANIFESTS.group.all.none.such", block, "two")
			unreadable(w, "group.all.app")
			put("group.all.motd", "two")
			w.Has(t, "group.all.app=one", "group.all.motd=two")
			srv.Raw(t, "$KV.MUSTER_MANIFESTS.group.all.other", block, "two")
			unreadable(w, "group.all.app", "group.all.other")
			_, s := w.Entries()
			if !slices.Equal(s.Invalid, []string{"group.all.none.such"}) {
				t.Errorf("invalid are %v", s.Invalid)
			}
			e, err := w.Read(t.Context(), "group.all.app", 1)
			if err != nil || e.Refused == "" || e.Revision == 0 {
				t.Errorf("%+v, %v", e, err)
			}

			// A new node, and one that knew the key.
			late := kvtest.Watch(t, kvtest.Bind(t, srv, quiet()), o)
			unreadable(late, "group.all.app", "group.all.other")
			late.Has(t, "group.all.motd=two")
			memory := w.Memory()
			w.Stop()
			again := kvtest.WatchSince(t, kvtest.Bind(t, srv, quiet()), o, memory)
			unreadable(again, "group.all.app", "group.all.other")
			again.Has(t, "group.all.app=one", "group.all.motd=two")

			put("group.all.app", "three")
			if _, err := store.Delete(t.Context(), "group.all.other", nil); err != nil {
				t.Fatal(err)
			}
			for _, w := range []*kvtest.Watching{late, again} {
				w.Has(t, "group.all.app=three", "group.all.motd=two")
				unreadable(w)
			}
		})
	}
}

// TestHeadersThatAreTooManyHoldUpNothing: the announcement of a message with too many
// headers has a sequence, and waiting for it to be readable held up all other keys.
func TestHeadersThatAreTooManyHoldUpNothing(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv, quiet()), watch.Options{Node: "web01", Audit: kvtest.Never, GroupJitter: time.Millisecond})
	// Waiting for each would take longer than the test waits.
	var keys []string
	for i := range 400 {
		keys = append(keys, fmt.Sprintf("group.all.a%03d", i))
		srv.Raw(t, "$KV.MUSTER_MANIFESTS."+keys[i], "NATS/1.0\r\n"+strings.Repeat("A: b\r\n", 30)+"\r\n", "one")
	}
	kvtest.Eventually(t, "keys that cannot be read", func() (bool, string) {
		_, s := w.Entries()
		return slices.Equal(s.Unreadable, keys), fmt.Sprintf("%+v", s)
	})
}
