package fleetcmd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// A node that floods the answers counts as failed and is named; answers of others are in the result.
func TestFloodOfAnswersLeavesAResult(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	nc := srv.Connect(t)
	answer := func(question, node, data string) error {
		m := nats.NewMsg(store.Names.AnswerSubject(question, node))
		m.Header.Set(requests.NodeHeader, node)
		m.Data = []byte(data)

		return nc.PublishMsg(m)
	}
	natstest.Answer(t, nc, "muster.ensure.all", func(m *nats.Msg) error {
		var sent []error
		for range 40 {
			sent = append(sent, answer(m.Reply, "web01", `{"phase":"running"}`))
		}

		return errors.Join(append(sent, answer(m.Reply, "db01", `{"phase":"done"}`))...)
	})
	var log bytes.Buffer
	by := floodedAsker(store.Store, slog.New(slog.NewTextHandler(&log, nil)))
	known := []model.Node{{NodeState: model.NodeState{Node: "web01"}}, {NodeState: model.NodeState{Node: "db01"}}}
	request := ask.Request{Network: by, Known: known, Targets: []fleet.Target{{Group: model.GroupAll}}, Silence: time.Minute}
	result, err := request.Send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := AnswerSummary(result, "answered"); got != "2 nodes answered, 1 failed" {
		t.Errorf("%s: %+v", got, result)
	}
	if len(result.Answers) == 2 && !strings.Contains(result.Answers[1].Error, "a flood of answers: more than 32") {
		t.Errorf("answer %+v", result.Answers[1])
	}
	if !strings.Contains(log.String(), "node floods its answers, the rest is dropped") || !strings.Contains(log.String(), "node=web01") {
		t.Errorf("log: %s", &log)
	}
}

// Nodes that did not answer get their command also over a connection that was lost.
func TestQueueWaitsForTheConnection(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	by := floodedAsker(store.Store, slog.New(slog.DiscardHandler))
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return store.Away() != nil, "" })
	srv.Start(t)
	result := &ask.Ensured{Missing: []string{"web01", "web02"}}
	if err := by.queueMissing(t.Context(), result, "id", time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	if len(result.Missing) != 0 || strings.Join(result.Queued, " ") != "web01 web02" {
		t.Errorf("result %+v", result)
	}
}

func floodedAsker(store *kvstore.Store, log *slog.Logger) Asker {
	return Asker{Store: store, Log: log, Verb: kvstore.VerbEnsure, Within: time.Minute, Encode: encoder(nil, signed.Ensure, func(expires time.Time) any {
		return model.EnsureRequest{ID: "id", Expires: expires}
	})}
}
