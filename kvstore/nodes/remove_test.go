package nodes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFactsWithHeadersAreInvalid: a node that stores such ones is no other than one that stores garbage.
func TestFactsWithHeadersAreInvalid(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	bucket := nodes.New(store.Store)
	for node, block := range map[string]string{"web01": "NATS/1.0\r\nfoo\r\n\r\n", "web02": "NATS/1.0\r\nNats-Subject: elsewhere\r\n\r\n"} {
		srv.Raw(t, store.Names().NodeFacts(node), block, "{}")
		if _, err := bucket.FactsDocument(t.Context(), node); !errors.Is(err, nodes.ErrInvalidFacts) {
			t.Errorf("%s: %v", node, err)
		}
	}
}

// TestRemove: nothing is known of the node any more, what marks that expires, and others stay.
func TestRemove(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, node := range []string{"web01", "web02"} {
		if err := store.PutState(t.Context(), model.NodeState{Node: node}, 0); err != nil {
			t.Fatal(err)
		}
		if err := store.PutFacts(t.Context(), node, model.Facts{"a": 1}); err != nil {
			t.Fatal(err)
		}
	}
	bucket := nodes.New(store.Store)
	if err := bucket.Remove(t.Context(), "web01"); err != nil {
		t.Fatal(err)
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
	for _, key := range []string{"state", "facts"} {
		m, err := stream.GetLastMsgForSubject(t.Context(), "$KV.MUSTER_NODES.web01."+key)
		if err != nil || m.Header.Get("Nats-TTL") != time.Minute.String() {
			t.Errorf("%s is marked by %+v, %v", key, m, err)
		}
	}
	if err := bucket.Remove(t.Context(), "web.01"); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("an invalid name = %v", err)
	}
}
