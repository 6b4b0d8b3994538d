package requests_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/kvtest"
)

// Messages that the server forwards to a node do not fill its log.
func TestAFloodOfDeliveriesIsAFewLines(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	var log hosttest.LogText
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: "web02", Log: slog.New(slog.NewTextHandler(&log, nil))})
	kvtest.Answers(t, store, "muster.ping.node.web02", nil, 1)
	nc := srv.Connect(t)
	for range 1000 {
		m := nats.NewMsg("muster.ping.node.web02")
		m.Header.Set("Nats-Stream", "MUSTER_COMMANDS")
		m.Reply = nc.NewInbox()
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	// It comes behind them.
	if _, err := nc.Request("muster.ping.node.web02", nil, kvtest.Deadline); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(log.String(), "request delivered from a stream rejected"); lines != 10 {
		t.Errorf("%d lines", lines)
	}
}

// A node that sends more answers than are read does not end the question: the others
// are heard, and it is named.
func TestAFloodOfAnswersHidesNoOther(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	flooding, quiet := srv.Connect(t), srv.Connect(t)
	answerAs := func(node, question string, data []byte) error {
		m := nats.NewMsg(store.Names.AnswerSubject(question, node))
		m.Header.Set(requests.NodeHeader, node)
		m.Data = data
		nc := quiet
		if node == "web01" {
			nc = flooding
		}

		return errors.Join(nc.PublishMsg(m), nc.Flush())
	}
	asked := make(chan string, 1)
	if _, err := flooding.Subscribe("muster.ensure.all", func(m *nats.Msg) { asked <- m.Reply }); err != nil {
		t.Fatal(err)
	}
	if err := flooding.Flush(); err != nil {
		t.Fatal(err)
	}
	go func() {
		question := <-asked
		for range 60 {
			if answerAs("web01", question, make([]byte, 900<<10)) != nil {
				return
			}
		}
		_ = answerAs("db01", question, []byte("done"))
	}()
	count, floods := 0, 0
	for r, err := range kvtest.Ask(t.Context(), store, "muster.ensure.all", nil) {
		if errors.Is(err, requests.ErrLost) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Node == "db01" {
			break
		}
		if count++; r.Flood {
			floods++
		}
		if r.Flood != (r.Problem != "") {
			t.Errorf("flood %v: %s", r.Flood, r.Problem)
		}
	}
	if count != 3 || floods != 1 {
		t.Errorf("%d answers of the node, %d say that it is a flood", count, floods)
	}
}

// A request survives a lost connection and reports it.
func TestALostConnectionEndsNoQuestion(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	resumed := make(chan struct{})
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{
		Node: "web01",
		Ensure: func(_ context.Context, _ *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
			respond(model.EnsureResponse{Phase: model.EnsureAcknowledged})
			go func() {
				<-resumed
				respond(model.EnsureResponse{Phase: model.EnsureDone})
			}()
		},
	})
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	lost, cut, answered := false, false, 0
	for _, err := range kvtest.Ask(t.Context(), store, "muster.ensure.all", nil) {
		switch {
		case errors.Is(err, requests.ErrLost):
			lost = true
		case err != nil:
			t.Fatal(err)
		default:
			answered++
		}
		if answered == 1 && !cut {
			cut = true
			if err := store.Conn.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
		if lost && answered == 1 {
			kvtest.Eventually(t, "connected again", func() (bool, string) { return store.Away() == nil, "away" })
			if err := store.Conn.Flush(); err != nil {
				t.Fatal(err)
			}
			close(resumed)
		}
		if answered == 2 {
			break
		}
	}
	if !lost || answered != 2 {
		t.Errorf("lost %v, %d answers", lost, answered)
	}
}
