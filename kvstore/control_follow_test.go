package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFollow yields the newest revision of each key, then each new revision, and marks the value
// that completes the initial set.
func TestFollow(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"empty": nil, "written": {"node.web01.pause", "group.web.pause", "node.web01.pause"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := kvtest.New(t)
			b := kvstore.NewControl(s.Store)
			put := func(key, value string) {
				t.Helper()
				if _, err := b.Put(t.Context(), key, []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			for i, key := range keys {
				put(key, fmt.Sprint(i+1))
			}
			ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
			defer stop()
			var got []string
			for f, err := range b.Follow(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if f.Key != "" {
					got = append(got, fmt.Sprintf("%s=%s deleted=%t refused=%t", f.Key, f.Value, f.Deleted, f.Refused != ""))
				}
				switch {
				case f.Complete && f.Key != "node.web02.labels" && !slices.ContainsFunc(got, func(line string) bool { return line == "marked" }):
					got = append(got, "marked")
					if _, err := b.Delete(t.Context(), "group.web.pause", nil); err != nil {
						t.Fatal(err)
					}
					forged := &nats.Msg{Subject: kvstore.KVSubject(s.Names.Control, "node.web01.pause"), Header: nats.Header{"Nats-Sequence": {"7"}, "KV-Operation": {"DEL"}}}
					if _, err := s.JetStream().PublishMsg(t.Context(), forged); err != nil {
						t.Fatal(err)
					}
					put("node.web02.labels", "last")
				}
				if f.Key == "node.web02.labels" {
					break
				}
			}
			want := []string{"marked", "group.web.pause= deleted=true refused=false", "node.web01.pause= deleted=false refused=true", "node.web02.labels=last deleted=false refused=false"}
			if len(keys) > 0 {
				want = append([]string{"group.web.pause=2 deleted=false refused=false", "node.web01.pause=3 deleted=false refused=false"}, want...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("followed\n%q, want\n%q", got, want)
			}
		})
	}
}

// TestFollowWithoutABucket reports that the bucket does not exist.
func TestFollowWithoutABucket(t *testing.T) {
	t.Parallel()
	srv, s := kvtest.New(t)
	if err := kvtest.Manager(t, srv).DeleteStream(kvstore.KVStream(s.Names.Control)); err != nil {
		t.Fatal(err)
	}
	for _, err := range kvstore.NewControl(s.Store).Follow(t.Context()) {
		if !errors.Is(err, model.ErrNotProvisioned) {
			t.Errorf("error = %v", err)
		}
	}
}
