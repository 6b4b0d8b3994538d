package natstest

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
)

// Bubble is a nats-server with JetStream inside a bubble of testing/synctest: it
// listens nowhere, and its clients are connected by pipes, so that its clock is
// the bubble's. TestMain must have called PrepareBubbles.
type Bubble struct {
	store string
	// srv is nil while it is stopped. Clients that reconnect read it.
	srv atomic.Pointer[server.Server]
}

// PrepareBubbles starts, outside of any bubble, what all servers of a process
// share. It is called by TestMain before any test runs.
func PrepareBubbles() { ats.Register() }

// StartBubble runs a server until Stop, which must be called before the bubble
// ends.
func StartBubble(tb testing.TB) *Bubble {
	tb.Helper()
	b := &Bubble{store: tb.TempDir()}
	b.Start(tb)

	return b
}

// Start runs the server again after Stop, on the same store; while it runs, it
// does nothing.
func (b *Bubble) Start(tb testing.TB) {
	tb.Helper()
	if b.srv.Load() != nil {
		return
	}
	srv, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: b.store, JetStreamMaxMemory: maxStore, JetStreamMaxStore: maxStore, NoLog: true, NoSigs: true,
	})
	if err != nil {
		tb.Fatalf("natstest: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		tb.Fatal("natstest: the server is not ready")
	}
	b.srv.Store(srv)
}

// Stop shuts the server down and waits until it is gone; the store stays.
func (b *Bubble) Stop() {
	if srv := b.srv.Swap(nil); srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		<-time.After(time.Second) // its writers end by the clock, which is the bubble's
	}
}

// InProcessConn returns one end of a pipe to the server.
func (b *Bubble) InProcessConn() (net.Conn, error) {
	srv := b.srv.Load()
	if srv == nil {
		return nil, errors.New("natstest: the server is stopped")
	}

	return srv.InProcessConn()
}

// Connect opens a connection that reconnects, also to a server that was started
// again. The caller closes it before the bubble ends.
func (b *Bubble) Connect(tb testing.TB, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	opts = append([]nats.Option{nats.InProcessServer(b), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond), nats.RetryOnFailedConnect(true)}, opts...)
	nc, err := nats.Connect("", opts...)
	if err != nil {
		tb.Fatalf("natstest: %v", err)
	}

	return nc
}
