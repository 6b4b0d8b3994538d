package natstest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Aged returns the URL of a proxy in front of the server, on which it says to have
// another version.
func (s *Server) Aged(tb testing.TB, version string) string {
	tb.Helper()

	return s.proxied(tb, func(line string) string {
		if strings.HasPrefix(line, "INFO ") {
			line = strings.Replace(line, `"version":"`+server.VERSION+`"`, `"version":"`+version+`"`, 1)
		}
		return line
	}, func(string) bool { return true })
}

// CutOnce returns the URL of a proxy in front of the server which once, instead of passing on a line of a client that
// has a text, closes the connection of the client.
func (s *Server) CutOnce(tb testing.TB, text string) string {
	tb.Helper()
	var isCut atomic.Bool

	return s.proxied(tb, func(line string) string { return line }, func(line string) bool {
		return !strings.Contains(line, text) || isCut.Swap(true)
	})
}

// DropAnswer returns the URL of a proxy in front of the server that drops the answer to the first message on a subject.
func (s *Server) DropAnswer(tb testing.TB, subject string) string {
	tb.Helper()
	var isSent, isArmed atomic.Bool

	return s.proxied(tb, func(line string) string {
		if parts := strings.Split(line, " "); (parts[0] == "MSG" || parts[0] == "HMSG") && isArmed.Swap(false) {
			parts[2] = "999999" // the client ignores messages of unknown subscriptions
			line = strings.Join(parts, " ")
		}
		return line
	}, func(line string) bool {
		if strings.HasPrefix(strings.TrimPrefix(line, "H"), "PUB "+subject+" ") && !isSent.Swap(true) {
			isArmed.Store(true)
		}
		return true
	})
}

// HangOnce returns the URL of a proxy in front of the server that sends nothing on the first connection.
func (s *Server) HangOnce(tb testing.TB) string {
	tb.Helper()
	var connections atomic.Int64

	return s.proxied(tb, func(line string) string {
		if strings.HasPrefix(line, "INFO ") && connections.Add(1) == 1 {
			return ""
		}
		return line
	}, func(string) bool { return true })
}

// Stall is a proxy that can hold back everything that the server sends.
type Stall struct {
	// URL is the address of the proxy.
	URL string

	mu      sync.Mutex
	left    int
	reached chan struct{}
	open    chan struct{}
}

// Stalling returns a proxy in front of the server. It passes on everything until StallAt.
func (s *Server) Stalling(tb testing.TB) *Stall {
	tb.Helper()
	stall := &Stall{open: make(chan struct{})}
	close(stall.open)
	stall.URL = s.proxied(tb, func(line string) string {
		stall.mu.Lock()
		open := stall.open
		stall.mu.Unlock()
		<-open
		return line
	}, func(line string) bool {
		if strings.HasPrefix(strings.TrimPrefix(line, "H"), "PUB ") {
			stall.count()
		}
		return true
	})

	return stall
}

// StallAt holds back the server from the n-th message that the client publishes from now on; the
// first is 1. reached is closed at that message. release ends the stall.
func (s *Stall) StallAt(n int) (reached <-chan struct{}, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.reached = n, make(chan struct{})

	return s.reached, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = 0
		select {
		case <-s.open:
		default:
			close(s.open)
		}
	}
}

func (s *Stall) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return
	}
	if s.left--; s.left == 0 {
		s.open = make(chan struct{})
		close(s.reached)
	}
}

// HangAt returns the URL of a proxy in front of the server that sends nothing on any connection after a client published to
// the subject.
func (s *Server) HangAt(tb testing.TB, subject string) string {
	tb.Helper()
	var isHung atomic.Bool

	return s.proxied(tb, func(line string) string {
		if isHung.Load() {
			return ""
		}
		return line
	}, func(line string) bool {
		if strings.HasPrefix(strings.TrimPrefix(line, "H"), "PUB "+subject+" ") {
			isHung.Store(true)
		}
		return true
	})
}

// proxied returns the URL of a proxy in front of the server. It changes the lines that the server sends, and closes
// the connection instead of passing on what a client sends where passes reports false.
func (s *Server) proxied(tb testing.TB, changed func(line string) string, passes func(line string) bool) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var open sync.WaitGroup
	tb.Cleanup(open.Wait)
	tb.Cleanup(func() { _ = l.Close() })
	target := strings.TrimPrefix(s.URL(), "nats://")
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { passOn(client, target, changed, passes) })
		}
	})

	return "nats://" + l.Addr().String()
}

// passOn passes one connection on, until one of its ends is closed.
func passOn(client net.Conn, target string, changed func(line string) string, passes func(line string) bool) {
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	var heard sync.WaitGroup
	defer heard.Wait()
	heard.Go(func() {
		copyLines(upstream, client, func(line string) (string, bool) { return line, passes(line) })
		_ = upstream.Close()
	})
	copyLines(client, upstream, func(line string) (string, bool) { return changed(line), true })
	_ = client.Close()
}

// copyLines copies lines until one does not pass, or one of the ends is closed.
func copyLines(to io.Writer, from io.Reader, each func(line string) (out string, ok bool)) {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadString('\n')
		out, ok := each(line)
		if !ok {
			return
		}
		if _, failed := io.WriteString(to, out); err != nil || failed != nil {
			return
		}
	}
}
