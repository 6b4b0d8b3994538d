// Package natstest runs a real nats-server with JetStream inside a test, on loopback, with a store that the
// test removes at its end. A server can be stopped and started again on the same port and store.
package natstest

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/loopback"
)

// startTimeout is how long a server and its clients may take to connect. It is
// generous, because the machine may be busy with other tests.
const startTimeout = 60 * time.Second

// maxStore is the total that streams may reserve; the server does not preallocate it.
const maxStore = 64 << 30

// Server is one nats-server. Its methods may be called from several goroutines.
type Server struct {
	config string
	store  string
	port   int
	most   int64

	mu  sync.Mutex
	srv *server.Server
}

// Option changes how a server is started.
type Option func(*Server)

// WithConfig configures the server in the format of nats-server, for example its accounts, users and
// permissions. The harness always sets listener and store.
func WithConfig(text string) Option { return func(s *Server) { s.config = text } }

// WithMaxStore limits the bytes that all streams of the server can take and reserve.
func WithMaxStore(most int64) Option { return func(s *Server) { s.most = most } }

// Start runs a server until the test ends. It fails the test when the server
// does not come up.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s := &Server{port: int(loopback.Address(tb).Port()), store: tb.TempDir(), most: maxStore}
	for _, opt := range opts {
		opt(s)
	}
	s.Start(tb)
	tb.Cleanup(s.Stop)

	return s
}

// Start runs the server again after Stop, on the same port and store; while it
// runs, it does nothing.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv != nil {
		return
	}
	opts, err := s.options()
	if err != nil {
		tb.Fatalf("natstest: configuration: %v", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		tb.Fatalf("natstest: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(startTimeout) {
		srv.Shutdown()
		tb.Fatalf("natstest: server on port %d is not ready after %s", s.port, startTimeout)
	}
	s.srv = srv
}

// Stop shuts the server down and waits until it is gone; the store stays. A
// stopped server may be stopped again.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return
	}
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	s.srv = nil
}

// Restart stops the server and starts it again.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Stop()
	s.Start(tb)
}

// Reload gives the server another configuration while it runs, as a reload of its file does.
func (s *Server) Reload(tb testing.TB, config string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config
	opts, err := s.options()
	if err == nil {
		err = s.srv.ReloadOptions(opts)
	}
	if err != nil {
		tb.Fatalf("natstest: reload: %v", err)
	}
}

// URL is where clients connect to; it stays the same over a restart.
func (s *Server) URL() string {
	return "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// Store returns the directory that the server keeps its streams in, also while it is stopped.
func (s *Server) Store() string { return s.store }

// Port is the TCP port on 127.0.0.1; it stays the same over a restart.
func (s *Server) Port() int { return s.port }

// Connect opens a plain connection that reconnects without end and is closed with
// the test. It fails the test when the server cannot be reached.
func (s *Server) Connect(tb testing.TB, opts ...nats.Option) *nats.Conn {
	tb.Helper()
	opts = append([]nats.Option{nats.Timeout(startTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond)}, opts...)
	nc, err := nats.Connect(s.URL(), opts...)
	if err != nil {
		tb.Fatalf("natstest: connect to %s: %v", s.URL(), err)
	}
	tb.Cleanup(nc.Close)

	return nc
}

// Answer answers the messages of a subject with f until the test ends. The end waits for the answer in
// progress, so its connection is still open. The server knows the subscription when Answer returns. An error
// of f fails the test.
func Answer(tb testing.TB, nc *nats.Conn, subject string, f func(*nats.Msg) error) {
	tb.Helper()
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
		if err := f(m); err != nil {
			tb.Errorf("natstest: answer on %s: %v", subject, err)
		}
	})
	if err == nil {
		err = nc.FlushTimeout(startTimeout)
	}
	if err != nil {
		tb.Fatalf("natstest: subscribe to %s: %v", subject, err)
	}
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	tb.Cleanup(func() {
		if err := sub.Drain(); err != nil {
			tb.Errorf("natstest: drain %s: %v", subject, err)
			return
		}
		<-ended
	})
}

// options builds what the server is started with; a configuration never moves
// the listener away from loopback or the store out of the test's directory.
func (s *Server) options() (*server.Options, error) {
	opts := &server.Options{}
	if s.config != "" {
		if err := opts.ProcessConfigString(s.config); err != nil {
			return nil, err
		}
	}
	opts.Host, opts.Port = "127.0.0.1", s.port
	opts.JetStream, opts.StoreDir = true, s.store
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = maxStore, s.most
	opts.NoLog, opts.NoSigs = true, true
	if opts.AuthTimeout == 0 {
		opts.AuthTimeout = startTimeout.Seconds()
	}
	if opts.TLSTimeout == 0 {
		opts.TLSTimeout = startTimeout.Seconds()
	}

	return opts, nil
}
