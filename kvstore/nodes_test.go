package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestNodesSayWhoTheyAre(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, node := range []string{"web01", "web02"} {
		if err := store.PutState(t.Context(), model.NodeState{Protocol: model.ProtocolNode, Node: node, Version: "1"}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.PutState(t.Context(), model.NodeState{Node: "web01", Version: "2"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.PutFacts(t.Context(), "web01", model.Facts{"os": map[string]any{"name": "linux"}}); err != nil {
		t.Fatal(err)
	}
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_NODES")
	for key, value := range map[string]string{"web03.state": "garbage", "web04.state": `{"node":"web01","groups":["web"],"version":"3"}`} {
		if _, err := kv.PutString(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	srv.Raw(t, store.Names.NodeState("web05"), "NATS/1.0\r\nfoo\r\n\r\n", "")
	all, err := store.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range all {
		got[n.Node] = n.Version
		if n.Unreadable != "" {
			got[n.Node] = fmt.Sprint(n.Unreadable, n.Groups)
		}
		if n.Silent || n.Heard.IsZero() != (n.Node == "web05") {
			t.Errorf("record = %+v", n)
		}
	}
	if want := map[string]string{"web01": "2", "web02": "1", "web03": "invalid character 'g' looking for beginning of value[]", "web04": "it names node \"web01\"[web]", "web05": "has headers that cannot be read: put it again without them, or remove it[]"}; !maps.Equal(got, want) {
		t.Errorf("nodes = %v, want %v", got, want)
	}
	if facts := kvtest.FactsOf(t, store.Conn, "web01"); facts != `{"os":{"name":"linux"}}` {
		t.Errorf("facts = %s", facts)
	}
	if err := store.PutState(t.Context(), model.NodeState{Node: "web.01"}, 0); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("put state = %v", err)
	}
	if err := store.PutFacts(t.Context(), "web01", model.Facts{"big": strings.Repeat("x", 2<<20)}); !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("put large facts = %v", err)
	}
}

// A node that stops storing is silent, unlike a node that never existed.
func TestSilentNodeStaysKnown(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put := func(node, version string, ttl time.Duration) {
		t.Helper()
		if err := store.PutState(t.Context(), model.NodeState{Node: node, Version: version}, ttl); err != nil {
			t.Fatal(err)
		}
	}
	gone := func() map[string]bool {
		t.Helper()
		all, err := store.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		for _, n := range all {
			out[n.Node+" "+n.Version] = n.Silent
		}
		return out
	}
	put("web01", "1", time.Millisecond)
	put("web02", "1", time.Hour)
	put("web03", "1", 0)
	silent := map[string]bool{"web01 1": true, "web02 1": false, "web03 1": false}
	kvtest.Eventually(t, "web01 is silent, and no other", func() (bool, string) {
		got := gone()
		return maps.Equal(got, silent), fmt.Sprint(got)
	})
	put("web01", "2", time.Hour)
	if got := gone(); !maps.Equal(got, map[string]bool{"web01 2": false, "web02 1": false, "web03 1": false}) {
		t.Errorf("after web01 came back: %v", got)
	}
	// A removed node is unknown.
	if err := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_NODES").Delete(t.Context(), "web02.state"); err != nil {
		t.Fatal(err)
	}
	if got := gone(); !maps.Equal(got, map[string]bool{"web01 2": false, "web03 1": false}) {
		t.Errorf("without web02: %v", got)
	}
}

// The lifetime of a state is independent of the silence limit.
func TestStateOutlivesSilence(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_MUSTER_NODES")
	if err != nil {
		t.Fatal(err)
	}
	for ttl, want := range map[time.Duration]string{time.Minute: "168h0m0s", 30 * 24 * time.Hour: "720h0m0s", 0: ""} {
		if err := store.PutState(t.Context(), model.NodeState{Node: "web01"}, ttl); err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(t.Context(), "$KV.MUSTER_NODES.web01.state")
		if err != nil || m.Header.Get("Nats-TTL") != want {
			t.Errorf("ttl %s: kept for %q, %v, want %q", ttl, m.Header.Get("Nats-TTL"), err, want)
		}
	}
}

// The size of a node's data is limited; the error names size and remedy. A raised limit applies at once.
func TestStateAndFactsAreBounded(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	big := model.Facts{"big": strings.Repeat("x", 600<<10)}
	err := store.PutFacts(t.Context(), "web01", big)
	if !errors.Is(err, model.ErrTooLarge) || !strings.Contains(err.Error(), "facts has 614410 bytes, the stream KV_MUSTER_NODES accepts 523264: reduce the facts, or an operator raises the bound with `muster fleet init --state-max SIZE`") {
		t.Errorf("put facts = %v", err)
	}
	if most := kvstore.NewNodes(store.Store).MaxMessage(); most >= 512<<10 || most < 500<<10 {
		t.Errorf("at most %d bytes", most)
	}
	// The server holds the bound, whatever a node looks at.
	reply, err := srv.Connect(t).Request("$KV.MUSTER_NODES.web01.facts", make([]byte, 600<<10), kvtest.Deadline)
	if err != nil || !strings.Contains(string(reply.Data), "message size exceeds maximum allowed") {
		t.Errorf("raw put = %s, %v", reply.Data, err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{StateMax: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := store.PutFacts(t.Context(), "web01", big); err != nil {
		t.Errorf("put facts after the bound was raised = %v", err)
	}
}

// TestNodesThatPublishAreListed lists a node whose state is replaced during the read.
func TestNodesThatPublishAreListed(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	state := model.NodeState{Node: "web01"}
	if err := store.PutState(t.Context(), state, 0); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for ctx.Err() == nil {
			_ = store.PutState(ctx, state, 0)
		}
	})
	missing := 0
	for range 300 {
		all, err := store.Nodes(t.Context())
		if err != nil || len(all) != 1 {
			missing++
		}
	}
	stop()
	publishing.Wait()
	if missing > 0 {
		t.Errorf("the node was missing in %d of 300 lists", missing)
	}
}
