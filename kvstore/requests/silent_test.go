package requests_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// through returns the fleet on a connection to the first of some servers, which uses the others after it.
func through(t *testing.T, servers ...string) *kvtest.Store {
	t.Helper()
	nc, err := nats.Options{Servers: servers, NoRandomize: true, Timeout: kvtest.Deadline, MaxReconnect: -1, ReconnectWait: 50 * time.Millisecond, AllowReconnect: true}.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)

	return kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
}

// TestAQuestionLeavesASilentServer tests that a question names the server that does not answer, and continues at another one.
func TestAQuestionLeavesASilentServer(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	acknowledging(t, kvtest.Bind(t, srv), "web01")
	all := ensureOf(store, "node.web01")
	asking := through(t, srv.HangAt(t, all[0].Subject), srv.URL())
	var named atomic.Value
	asking.OnSilent(func(server string) { named.Store(server) })
	name := asking.Conn.ConnectedServerName()
	asked(t, asking, all, 1, func(string) {})
	if named.Load() != name {
		t.Errorf("named %v, want %s", named.Load(), name)
	}
}

// TestAnAnswerIsSentAgain tests that a node sends an answer again if the connection breaks with it. The node
// has answered, so it gets no second request.
func TestAnAnswerIsSentAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	cut := through(t, srv.CutOnce(t, `"phase":"done"`), srv.URL())
	ready := make(chan struct{})
	kvtest.Serve(t, cut, requests.ServeOptions{Node: "web01", Ready: func() { close(ready) },
		Ensure: func(_ context.Context, _ *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
			respond(model.EnsureResponse{Phase: model.EnsureAcknowledged})
			respond(model.EnsureResponse{Phase: model.EnsureDone})
		},
	})
	kvtest.Receive(t, ready)
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	for r, err := range store.Ask(ctx, ensureOf(store, "node.web01")) {
		if err == nil && strings.Contains(string(r.Data), `"phase":"done"`) {
			return
		}
	}
	t.Error("the last answer is lost")
}
