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
	all := newAnswers()
	go New(store).read(t.Context(), sub, question{answer: func(node string) string { return names.Reply("q", node) }}, 0, 0, all, &repeats{subject: func(string) string { return "" }, reconnected: func() time.Time { return time.Time{} }, count: maxRepeats})
	if one, _ := all.next(t.Context()); !errors.Is(one.err, ErrLost) || !errors.Is(one.err, nats.ErrSlowConsumer) || one.last {
		t.Errorf("first %+v", one)
	}
	for range 2 {
		if one, _ := all.next(t.Context()); one.reply.Node != "web01" || one.err != nil {
			t.Errorf("then %+v", one)
		}
	}
	answer("db01")
	if one, _ := all.next(t.Context()); one.reply.Node != "db01" {
		t.Errorf("last %+v", one)
	}
}
