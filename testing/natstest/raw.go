package natstest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Raw stores a message with a block of headers that no client would send. It is in the
// stream of its subject when Raw returns.
func (s *Server) Raw(tb testing.TB, subject, block, data string) {
	tb.Helper()
	const inbox = "_INBOX.raw"
	s.send(tb, fmt.Sprintf("SUB %s 1\r\nHPUB %s %s %d %d\r\n%s%s\r\n", inbox, subject, inbox, len(block), len(block)+len(data), block, data), "MSG "+inbox)
}

// send sends lines of the protocol and waits for a line with the given prefix.
func (s *Server) send(tb testing.TB, lines, until string) {
	tb.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"protocol\":1}\r\n%s", lines)
	for answers := bufio.NewScanner(conn); answers.Scan(); {
		switch line := answers.Text(); {
		case strings.HasPrefix(line, until):
			return
		case strings.HasPrefix(line, "-ERR"):
			tb.Fatal(line)
		}
	}
	tb.Fatal("the server did not answer")
}

// PublishRaw publishes such a message, whether or not a stream stores it, and returns it as a client receives
// it.
func PublishRaw(tb testing.TB, s *Server, nc *nats.Conn, subject, block, data string) *nats.Msg {
	tb.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	s.send(tb, fmt.Sprintf("HPUB %s %d %d\r\n%s%s\r\nPING\r\n", subject, len(block), len(block)+len(data), block, data), "PONG")
	m, err := sub.NextMsg(startTimeout)
	if err != nil {
		tb.Fatal(err)
	}

	return m
}
