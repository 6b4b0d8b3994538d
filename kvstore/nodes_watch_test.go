package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestWatch returns stored values, then changes and removals. Unreadable values are marked and end nothing.
// It needs no permission to create consumers.
func TestWatch(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	for name, store := range map[string]*kvtest.Store{"administrator": g.Admin, "viewer": kvtest.BindTo(t, g.Connect(t, kvtest.Viewer))} {
		put := func(node, version string) {
			t.Helper()
			if err := g.Admin.PutState(t.Context(), model.NodeState{Node: node, Version: version}, 0); err != nil {
				t.Fatal(err)
			}
		}
		put("web01", "1")
		ctx, stop := context.WithTimeout(t.Context(), kvtest.Deadline)
		var got []string
		for c, err := range kvstore.NewNodes(store.Store).Watch(ctx) {
			if err != nil {
				t.Fatalf("%s: %v after %q", name, err, got)
			}
			if len(got) == 0 && c.Gone {
				continue // the removal of the turn before
			}
			got = append(got, fmt.Sprint(c.Node.Node, " ", c.Version, " ", c.Gone, " ", c.Unreadable != ""))
			kv := kvtest.PlainKV(t, g.Admin.Conn, "MUSTER_NODES")
			var failed error
			switch len(got) {
			case 1:
				put("web01", "2")
			case 2:
				_, failed = kv.PutString(t.Context(), "web02.state", "garbage")
			case 3:
				failed = kv.Delete(t.Context(), "web02.state")
			}
			if failed != nil {
				t.Fatal(failed)
			}
			if len(got) == 4 {
				break
			}
		}
		stop()
		if want := "[web01 1 false false web01 2 false false web02  false true web02  true false]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStored returns the names of nodes with a state, readable or not.
func TestStored(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_NODES")
	for _, key := range []string{"web01.state", "web02.state", "web03.state", "web04.facts"} {
		if _, err := kv.PutString(t.Context(), key, "garbage"); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Delete(t.Context(), "web02.state"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, err := range kvstore.NewNodes(store.Store).Stored(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if fmt.Sprint(got) != "[web01 web03]" {
		t.Errorf("names %v", got)
	}
}

// TestFacts: as they are stored.
func TestFacts(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	bucket := kvstore.NewNodes(store.Store)
	if err := store.PutFacts(t.Context(), "web01", model.Facts{"big": 12345678901234567}); err != nil {
		t.Fatal(err)
	}
	if got, err := bucket.FactsDocument(t.Context(), "web01"); err != nil || string(got) != `{"big":12345678901234567}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := bucket.FactsDocument(t.Context(), "web02"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("none = %v", err)
	}
	if _, err := bucket.FactsDocument(t.Context(), "web.02"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("another key = %v", err)
	}
	for _, value := range []string{"garbage", "[]", `{"a":`} {
		if _, err := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_NODES").PutString(t.Context(), "web02.facts", value); err != nil {
			t.Fatal(err)
		}
		if _, err := bucket.FactsDocument(t.Context(), "web02"); !errors.Is(err, kvstore.ErrInvalidFacts) {
			t.Errorf("%s = %v", value, err)
		}
	}
}
