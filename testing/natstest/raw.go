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

// Raw publishes a message with a block of headers that no client would send.
func (s *Server) Raw(tb testing.TB, subject, block, data string) {
	tb.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startTimeout))
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"protocol\":1}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n",
		subject, len(block), len(block)+len(data), block, data)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "PONG":
			return
		case strings.HasPrefix(line, "-ERR"):
			tb.Fatal(line)
		}
	}
	tb.Fatal("the server did not answer")
}

// PublishRaw publishes such a message and returns how a client receives it.
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
	s.Raw(tb, subject, block, data)
	m, err := sub.NextMsg(startTimeout)
	if err != nil {
		tb.Fatal(err)
	}

	return m
}
