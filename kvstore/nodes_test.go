package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

func TestNodesSayWhoTheyAre(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	for _, node := range []string{"web01", "web02"} {
		if err := store.PutState(t.Context(), node, model.NodeState{Protocol: model.ProtocolNode, Node: node, Version: "1"}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.PutState(t.Context(), "web01", model.NodeState{Node: "web01", Version: "2"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.PutFacts(t.Context(), "web01", model.Facts{"os": map[string]any{"name": "linux"}}, time.Hour); err != nil {
		t.Fatal(err)
	}
	kv := plainKV(t, srv.Connect(t), "MUSTER_NODES")
	for key, value := range map[string]string{"web03.state": "garbage", "web04.state": `{"node":"web01"}`} {
		if _, err := kv.PutString(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	nodes, err := store.Nodes(t.Context())
	if err == nil || !strings.Contains(err.Error(), "node web03") || !strings.Contains(err.Error(), "node web04") {
		t.Errorf("error = %v, want web03 and web04 in it", err)
	}
	got := map[string]string{}
	for _, n := range nodes {
		got[n.Node] = n.State.Version
		if n.Gone || n.Updated.IsZero() || n.Revision == 0 || n.State.Node != n.Node {
			t.Errorf("record = %+v", n)
		}
	}
	if want := map[string]string{"web01": "2", "web02": "1"}; !maps.Equal(got, want) {
		t.Errorf("nodes = %v, want %v", got, want)
	}
	facts, err := store.Facts(t.Context(), "web01")
	if err != nil || fmt.Sprint(facts) != "map[os:map[name:linux]]" {
		t.Errorf("facts = %v, %v", facts, err)
	}
	if _, err := store.Facts(t.Context(), "web02"); !errors.Is(err, kvstore.ErrNotFound) {
		t.Errorf("facts of web02 = %v", err)
	}
	if err := store.PutState(t.Context(), "web.01", model.NodeState{}, 0); !errors.Is(err, kvstore.ErrInvalidName) {
		t.Errorf("put state = %v", err)
	}
	if err := store.PutFacts(t.Context(), "web01", model.Facts{"big": strings.Repeat("x", 2<<20)}, 0); !errors.Is(err, kvstore.ErrTooLarge) {
		t.Errorf("put large facts = %v", err)
	}
}

// A state whose time has come leaves a mark, which tells a silent node from one
// that never was.
func TestSilentNodeLeavesAMark(t *testing.T) {
	t.Parallel()
	_, store := newStore(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	// Less than the server's whole second is rounded up.
	if err := store.PutState(ctx, "web01", model.NodeState{Node: "web01"}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	var seen []bool
	for r, err := range store.FollowNodes(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, r.Gone); r.Gone {
			break
		}
	}
	if !slices.Equal(seen, []bool{false, true}) {
		t.Errorf("gone: %v", seen)
	}
	nodes, err := store.Nodes(ctx)
	if err != nil || len(nodes) != 1 || !nodes[0].Gone || nodes[0].Node != "web01" {
		t.Errorf("nodes = %+v, %v", nodes, err)
	}
	// It comes back.
	if err := store.PutState(ctx, "web01", model.NodeState{Node: "web01"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if nodes, err := store.Nodes(ctx); err != nil || len(nodes) != 1 || nodes[0].Gone {
		t.Errorf("nodes = %+v, %v", nodes, err)
	}
}
