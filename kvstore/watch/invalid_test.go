package watch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestKeysOfAWrongForm: what a client puts under one is seen by the node and the
// operator, and can be removed.
func TestKeysOfAWrongForm(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	put := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if _, err := kv.PutString(t.Context(), key, "muster: {}"); err != nil {
				t.Fatal(err)
			}
		}
	}
	long := "node.web01." + strings.Repeat("x", model.MaxKey)
	put(long, "node.web01.a.b", "node.web01._x", "node.web01", "other", "node.web02.c.d", "group.all.motd")
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond})
	seen := func(want ...string) {
		t.Helper()
		kvtest.Eventually(t, "invalid keys", func() (bool, string) {
			_, s := w.Entries()
			return slices.Equal(s.Invalid, want), fmt.Sprint(s.Invalid)
		})
	}
	seen("node.web01._x", "node.web01.a.b", long)
	put("group.all.x.y")
	seen("group.all.x.y", "node.web01._x", "node.web01.a.b", long)
	// What an administrator purges leaves no mark.
	stream, err := kvtest.Manager(t, srv).LoadStream("KV_MUSTER_MANIFESTS")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(&api.JSApiStreamPurgeRequest{Subject: "$KV.MUSTER_MANIFESTS.node.web01.a.b"}); err != nil {
		t.Fatal(err)
	}
	seen("group.all.x.y", "node.web01._x", long)
	put("node.web01.a.b")
	all, err := store.Invalid(t.Context())
	var keys []string
	for _, l := range all {
		keys = append(keys, l.Key)
	}
	if want := []string{"group.all.x.y", "node.web01", "node.web01._x", "node.web01.a.b", long, "node.web02.c.d", "other"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%v, %v", keys, err)
	}
	for _, key := range keys {
		if _, err := store.DeleteInvalid(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	seen()
	if _, err := store.DeleteInvalid(t.Context(), "other"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("deleted again: %v", err)
	}
	for _, key := range []string{"group.all.motd", "a.*", ">"} {
		if _, err := store.DeleteInvalid(t.Context(), key); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
