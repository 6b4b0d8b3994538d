package kvstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// A server that sends more messages than were asked for does not fill the memory of its
// client.
func TestBatchesEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix = kvstore.APIPrefix("lying.API")
	server := srv.Connect(t)
	natstest.Answer(t, server, prefix.DirectGet("S", ""), func(m *nats.Msg) error {
		for n := range 1000 {
			reply := nats.NewMsg(m.Reply)
			for name, value := range map[string]string{nats.JSStream: "S", nats.JSSubject: "s.a", nats.JSSequence: fmt.Sprint(n + 1), nats.JSTimeStamp: "2026-01-02T03:04:05Z"} {
				reply.Header[name] = []string{value}
			}
			if err := server.PublishMsg(reply); err != nil {
				return err
			}
		}

		return nil
	})
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn.Close)
	page, err := store.Page(t.Context(), kvstore.Query{Stream: "S", Subject: "s.>", From: 1}, 4)
	if !errors.Is(err, kvstore.ErrWrongAnswer) || len(page.Messages) != 4 {
		t.Errorf("%d messages, %v", len(page.Messages), err)
	}
}

// TestPagesAreBounded: a page of large messages ends after 4 MiB, and the next page continues after it.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	const count, size = 10, 900 << 10
	value := bytes.Repeat([]byte("x"), size)
	for i := range count {
		if _, err := store.Put(t.Context(), fmt.Sprintf("group.web.m%d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	a, read := kvstore.Query{Stream: "KV_MUSTER_MANIFESTS", Subject: "$KV.MUSTER_MANIFESTS.>", From: 1}, 0
	for more := true; more; {
		p, err := store.Page(t.Context(), a, 256)
		if err != nil || len(p.Messages) == 0 || (len(p.Messages)-1)*size > 4<<20 {
			t.Fatalf("a page of %d messages of %d bytes, %v", len(p.Messages), size, err)
		}
		read += len(p.Messages)
		a.From, more = p.Next, p.More
	}
	if read != count {
		t.Errorf("%d messages, not %d", read, count)
	}
}

// TestStoredAt: a message is found by its sequence as long as the stream has it; the one behind it is
// none in its place.
func TestStoredAt(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	nodes := kvstore.NewNodes(store.Store)
	var times []time.Time
	for sequence := uint64(1); sequence <= 2; sequence++ {
		if err := store.PutState(t.Context(), model.NodeState{Node: fmt.Sprint("web0", sequence)}, time.Hour); err != nil {
			t.Fatal(err)
		}
		_, last, err := nodes.Age(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at, err := nodes.StoredAt(t.Context(), last)
		if err != nil || at.IsZero() {
			t.Fatalf("%d: %s, %v", last, at, err)
		}
		times = append(times, at)
	}
	if times[0].Equal(times[1]) {
		t.Error("two messages are one")
	}
	if at, err := nodes.StoredAt(t.Context(), 99); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("99: %s, %v", at, err)
	}
}
