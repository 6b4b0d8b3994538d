package natstest

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Aged returns the URL of a proxy in front of the server, on which it says to have
// another version.
func (s *Server) Aged(tb testing.TB, version string) string {
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
			open.Go(func() { aged(client, target, version) })
		}
	})

	return "nats://" + l.Addr().String()
}

// aged passes one connection on, until one of its ends is closed.
func aged(client net.Conn, target, version string) {
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	var heard sync.WaitGroup
	defer heard.Wait()
	heard.Go(func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.Close()
	})
	for said := bufio.NewReader(upstream); ; {
		line, err := said.ReadString('\n')
		if strings.HasPrefix(line, "INFO ") {
			line = strings.Replace(line, `"version":"`+server.VERSION+`"`, `"version":"`+version+`"`, 1)
		}
		if _, failed := io.WriteString(client, line); err != nil || failed != nil {
			_ = client.Close()
			return
		}
	}
}
