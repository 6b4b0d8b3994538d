package requests_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
)

// logText is a log that is written by several goroutines.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(b)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

// Whoever has the server deliver messages to a node does not fill its log.
func TestAFloodOfDeliveriesIsAFewLines(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	var log logText
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
