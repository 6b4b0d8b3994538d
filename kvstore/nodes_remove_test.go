package kvstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFactsWithHeadersAreInvalid: such facts are treated like garbage.
func TestFactsWithHeadersAreInvalid(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	bucket := kvstore.NewNodes(store.Store)
	for node, block := range map[string]string{"web01": "NATS/1.0\r\nfoo\r\n\r\n", "web02": "NATS/1.0\r\nNats-Subject: elsewhere\r\n\r\n"} {
		srv.Raw(t, store.Names.NodeFacts(node), block, "{}")
		if _, err := bucket.FactsDocument(t.Context(), node); !errors.Is(err, kvstore.ErrInvalidFacts) {
			t.Errorf("%s: %v", node, err)
		}
	}
}

// TestWhatANodeStoredDoesNotKeepIt: a node with unreadable headers is removed like others.
func TestWhatANodeStoredDoesNotKeepIt(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	bucket := kvstore.NewNodes(store.Store)
	for node, block := range map[string]string{"web01": "NATS/1.0\r\nfoo\r\n\r\n", "web02": "NATS/1.0\r\nNats-Subject: elsewhere\r\n\r\n"} {
		srv.Raw(t, store.Names.NodeState(node), block, "{}")
		if err := bucket.Remove(t.Context(), node); err != nil {
			t.Errorf("%s: %v", node, err)
		}
		if _, err := bucket.State(t.Context(), node); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s is left: %v", node, err)
		}
	}
}

// TestRemove removes all data of the node and no data of others. The delete marker expires no earlier than
// the state, because a killed server could find the state again.
func TestRemove(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for node, ttl := range map[string]time.Duration{"web01": time.Minute, "web02": 0, "web03": 0, "web04": 30 * 24 * time.Hour} {
		if err := store.PutState(t.Context(), model.NodeState{Node: node}, ttl); err != nil {
			t.Fatal(err)
		}
		if err := store.PutFacts(t.Context(), node, model.Facts{"a": 1}); err != nil {
			t.Fatal(err)
		}
	}
	bucket := kvstore.NewNodes(store.Store)
	for _, node := range []string{"web01", "web03", "web04", "web05"} {
		if err := bucket.Remove(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := store.Nodes(t.Context()); err != nil || len(all) != 1 || all[0].Node != "web02" {
		t.Errorf("left are %+v, %v", all, err)
	}
	if _, err := bucket.FactsDocument(t.Context(), "web01"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("facts = %v", err)
	}
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_MUSTER_NODES")
	if err != nil {
		t.Fatal(err)
	}
	for node, ttl := range map[string]string{"web01": "168h0m0s", "web03": "", "web04": "720h0m0s", "web05": "168h0m0s"} {
		for _, key := range []string{"state", "facts"} {
			m, err := stream.GetLastMsgForSubject(t.Context(), "$KV.MUSTER_NODES."+node+"."+key)
			if err != nil || m.Header.Get("Nats-TTL") != ttl {
				t.Errorf("%s of %s is marked by %+v, %v", key, node, m, err)
			}
		}
	}
	if err := bucket.Remove(t.Context(), "web.01"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("an invalid name = %v", err)
	}
}
