package kvstore_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestAMessageIsSentAgain tests that the store sends a message again after it lost the acknowledgement, and stores it once.
func TestAMessageIsSentAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, subject := range []string{"$KV.MUSTER_MANIFESTS.group.web.x", "$KV.MUSTER_CONTROL.node.web01.pause"} {
		lossy := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(connectTo(t, srv.DropAnswer(t, subject)), "") })
		first, err := lossy.Publish(t.Context(), kvstore.NewMsg(subject, []byte("value")))
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		if again, err := store.Store.Newest(t.Context(), subject); err != nil || again != first {
			t.Errorf("%s: stored as %d and then as %d, %v", subject, first, again, err)
		}
	}
}

// TestAPageIsReadAgain tests that the store repeats a batch read without an answer, and continues after an incomplete one.
func TestAPageIsReadAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const count = 6
	for i := range count {
		if _, err := store.Put(t.Context(), fmt.Sprintf("group.web.m%d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int64
	var mu sync.Mutex
	relay := srv.Connect(t)
	// The relay does not answer the first request, and ends its answers to the second one early.
	natstest.Answer(t, relay, "hung.DIRECT.GET.KV_MUSTER_MANIFESTS", func(m *nats.Msg) error {
		mu.Lock()
		defer mu.Unlock()
		turn := asked.Add(1)
		if turn == 1 {
			return nil
		}
		var request map[string]any
		if err := json.Unmarshal(m.Data, &request); err != nil {
			return err
		}
		if turn == 2 {
			request["batch"] = 2
		}
		body, err := json.Marshal(request)
		if err != nil {
			return err
		}
		inbox := relay.NewInbox()
		answers, err := relay.SubscribeSync(inbox)
		if err != nil {
			return err
		}
		defer func() { _ = answers.Unsubscribe() }()
		if err := relay.PublishRequest("$JS.API.DIRECT.GET.KV_MUSTER_MANIFESTS", inbox, body); err != nil {
			return err
		}
		for {
			reply, err := answers.NextMsg(kvtest.Deadline)
			isEnd := err == nil && len(reply.Data) == 0 && reply.Header.Get("Status") == "204"
			if err != nil || turn == 2 && isEnd {
				return err
			}
			out := &nats.Msg{Subject: m.Reply, Header: reply.Header, Data: reply.Data}
			if err := relay.PublishMsg(out); err != nil || isEnd {
				return err
			}
		}
	})
	natstest.Answer(t, relay, "hung.STREAM.LIST", func(m *nats.Msg) error {
		reply, err := relay.Request("$JS.API.STREAM.LIST", m.Data, kvtest.Deadline)
		if err != nil {
			return err
		}
		return m.Respond(reply.Data)
	})
	hung, err := kvstore.New(srv.Connect(t), "", "hung")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for next, more := uint64(1), true; more; {
		p, err := hung.Page(t.Context(), kvstore.Query{Stream: "KV_MUSTER_MANIFESTS", Subject: "$KV.MUSTER_MANIFESTS.>", From: next}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Messages {
			found[m.Subject]++
		}
		next, more = p.Next, p.More
	}
	if asked.Load() != 3 || len(found) != count {
		t.Errorf("%d requests, %v", asked.Load(), found)
	}
}

// connectTo connects to a URL until the test ends.
func connectTo(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, nats.Timeout(kvtest.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)

	return nc
}
