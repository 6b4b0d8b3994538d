package fleetcmd

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// swallowing dials connections that lose all data from the first write with a given text.
type swallowing struct {
	text atomic.Pointer[string]
}

// Dial connects.
func (s *swallowing) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)

	return &lossy{Conn: c, by: s}, err
}

type lossy struct {
	net.Conn
	by   *swallowing
	lost bool
}

// Write writes, or loses it.
func (l *lossy) Write(b []byte) (int, error) {
	if text := l.by.text.Load(); text != nil && bytes.Contains(b, []byte(*text)) {
		l.lost = true
	}
	if l.lost {
		return len(b), nil
	}

	return l.Conn.Write(b)
}

// TestWhetherAPauseWasWritten: without an answer of NATS, the error says "not written" only if that is
// certain.
func TestWhetherAPauseWasWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lost, want string }{
		"what is read":    {"DIRECT.GET.KV_MUSTER_CONTROL", "NATS does not answer: not written ("},
		"what is written": {"PUB $KV.MUSTER_CONTROL.", "NATS does not answer: it may have been written, see the audit ("},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _ := kvtest.New(t)
			for _, resume := range []bool{false, true} {
				t.Run(map[bool]string{false: "pause", true: "resume"}[resume], func(t *testing.T) {
					t.Parallel()
					conn := &swallowing{}
					b := backend{store: kvtest.Bind(t, srv, nats.SetCustomDialer(conn)).Store, log: slog.New(slog.DiscardHandler), paused: func(string) string { return "" }}
					if _, err := b.Pause(t.Context(), "node.web01", model.Pause{By: "anna"}); err != nil {
						t.Fatal(err)
					}
					conn.text.Store(&c.lost)
					write := func() (string, error) { return b.Pause(t.Context(), "node.web01", model.Pause{By: "anna"}) }
					if resume {
						write = func() (string, error) { return b.Resume(t.Context(), "node.web01", "anna") }
					}
					if _, err := write(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
						t.Errorf("%v, want %s", err, c.want)
					}
				})
			}
		})
	}
}

// TestNothingIsWrittenWhileNATSIsAway: the error comes at once.
func TestNothingIsWrittenWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	b := backend{store: store.Store, log: slog.New(slog.DiscardHandler), paused: func(string) string { return "" }}
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return store.Away() != nil, "" })
	const want = "NATS cannot be reached (nats: server is disconnected): not written"
	for name, write := range map[string]func(context.Context) (string, error){
		"pause":  func(ctx context.Context) (string, error) { return b.Pause(ctx, "node.web01", model.Pause{By: "anna"}) },
		"resume": func(ctx context.Context) (string, error) { return b.Resume(ctx, "node.web01", "anna") },
	} {
		if _, err := write(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
