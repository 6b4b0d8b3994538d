package kvstore_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestScansEnd: a server that always has the states or facts of more nodes does not keep its
// client busy for good, nor fill its memory.
func TestScansEnd(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	const prefix = kvstore.APIPrefix("lying.API")
	server := srv.Connect(t)
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn().Close)
	stream, names := kvstore.KVStream(store.Names().Nodes()), store.Names()
	natstest.Answer(t, server, prefix.StreamList(), func(m *nats.Msg) error { return m.Respond([]byte(`{"total":0,"streams":[]}`)) })
	var sent atomic.Int64
	var facts atomic.Bool
	natstest.Answer(t, server, prefix.DirectGet(stream, ""), func(m *nats.Msg) error {
		const batch, enough = 2000, 25_000 // the test has failed then
		for range batch {
			n := sent.Add(1)
			subject := names.NodeState(fmt.Sprint("n", n))
			if facts.Load() {
				subject = names.NodeFacts(fmt.Sprint("n", n))
			}
			reply := nats.NewMsg(m.Reply)
			for name, value := range map[string]string{nats.JSStream: stream, nats.JSSubject: subject, nats.JSSequence: fmt.Sprint(n), nats.JSTimeStamp: "2026-01-02T03:04:05Z"} {
				reply.Header[name] = []string{value}
			}
			if err := server.PublishMsg(reply); err != nil {
				return err
			}
		}
		end := nats.NewMsg(m.Reply)
		end.Header["Status"] = []string{"204"}
		end.Header["Nats-Num-Pending"] = []string{"1000"}
		if sent.Load() >= enough {
			end.Header["Nats-Num-Pending"] = []string{"0"}
		}

		return server.PublishMsg(end)
	})
	bucket := kvstore.Bounded(kvstore.NewNodes(store), 20_000)
	if all, err := bucket.Nodes(t.Context()); !errors.Is(err, kvstore.ErrWrongAnswer) {
		t.Errorf("%d nodes, an error: %t", len(all), err != nil)
	}
	sent.Store(0)
	var failed error
	for _, err := range bucket.Stored(t.Context()) {
		failed = err
	}
	if !errors.Is(failed, kvstore.ErrWrongAnswer) {
		t.Errorf("stored: %v", failed)
	}
	sent.Store(0)
	facts.Store(true)
	some := make([]string, 100)
	for i := range some {
		some[i] = fmt.Sprint("n", i)
	}
	failed = nil
	for _, err := range bucket.Facts(t.Context(), some) {
		failed = err
	}
	if !errors.Is(failed, kvstore.ErrWrongAnswer) {
		t.Errorf("facts: %v", failed)
	}
}
