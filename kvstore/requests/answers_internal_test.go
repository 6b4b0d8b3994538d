package requests

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/natstest"
)

// A message dropped by a full buffer does not end the request: it is reported, and later answers are read.
func TestADroppedAnswerEndsNoQuestion(t *testing.T) {
	t.Parallel()
	nc := natstest.Start(t).Connect(t)
	store, err := kvstore.New(nc, "", "")
	if err != nil {
		t.Fatal(err)
	}
	names := store.Names
	sub, err := nc.SubscribeSync(names.Reply("q", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(2, -1); err != nil {
		t.Fatal(err)
	}
	answer := func(node string) {
		m := nats.NewMsg(names.Reply("q", node))
		m.Header.Set(NodeHeader, node)
		if err := errors.Join(nc.PublishMsg(m), nc.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		answer("web01")
	}
	count := 0
	r := &reader{
		client: New(store), sub: sub, question: question{answer: func(node string) string { return names.Reply("q", node) }}, sent: map[string]sent{},
		again: &repeats{subject: func(string) string { return "" }, reconnected: func() time.Time { return time.Time{} }, count: maxRepeats},
	}
	r.yield = func(reply Reply, err error) bool {
		switch count++; count {
		case 1:
			if !errors.Is(err, ErrLost) || !errors.Is(err, nats.ErrSlowConsumer) {
				t.Errorf("first %+v, %v", reply, err)
			}
		case 2, 3:
			if reply.Node != "web01" || err != nil {
				t.Errorf("then %+v, %v", reply, err)
			}
			if count == 3 {
				answer("db01")
			}
		default:
			if reply.Node != "db01" {
				t.Errorf("last %+v", reply)
			}
			return false
		}
		return true
	}
	if err := r.read(t.Context()); err != nil || count != 4 {
		t.Errorf("%d answers, %v", count, err)
	}
}
