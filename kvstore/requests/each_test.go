package requests_test

import (
	"context"
	"errors"
	"testing"

	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestEachNodeGetsItsRequest: several requests are one question, and a node that is away ends
// it for no other.
func TestEachNodeGetsItsRequest(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	all := []requests.Request{{Subject: "muster.ping.node.away", Data: []byte("to away")}}
	for _, node := range []string{"web01", "web02"} {
		kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: node, Ping: func(_ context.Context, data []byte) (any, error) { return node + " got " + string(data), nil }})
		kvtest.Answers(t, store, "muster.ping.node."+node, nil, 1)
		all = append(all, requests.Request{Subject: "muster.ping.node." + node, Data: []byte("to " + node)})
	}
	got := map[string]string{}
	for r, err := range store.Ask(t.Context(), all) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Node != "" {
			got[r.Node] = string(r.Data)
		}
		if len(got) == 2 {
			break
		}
	}
	if got["web01"] != `"web01 got to web01"` || got["web02"] != `"web02 got to web02"` {
		t.Errorf("answers %v", got)
	}
	all[1].Data = make([]byte, 2<<20)
	for _, err := range store.Ask(t.Context(), all) {
		if !errors.Is(err, model.ErrTooLarge) {
			t.Errorf("a long request among others = %v", err)
		}
	}
}
