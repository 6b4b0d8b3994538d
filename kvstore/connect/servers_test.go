package connect_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// welcome welcomes a client of NATS on a connection, announces other servers to it, and returns once it
// waits for nothing.
func welcome(conn net.Conn, announced []string) {
	list := `"` + strings.Join(announced, `","`) + `"`
	_, _ = fmt.Fprintf(conn, "INFO {\"server_id\":\"x\",\"version\":\"2.15.2\",\"headers\":true,\"max_payload\":1048576,\"connect_urls\":[%s]}\r\n", list)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if lines.Text() == "PING" {
			_, _ = fmt.Fprint(conn, "PONG\r\n")
			return
		}
	}
}

// TestAnnouncedServersKeepNobodyAway: the client tries a configured server after each announced one.
func TestAnnouncedServersKeepNobodyAway(t *testing.T) {
	t.Parallel()
	var dialed atomic.Int64
	var announced []string
	for range 30 {
		l := kvtest.Must(t, func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
		t.Cleanup(func() { _ = l.Close() })
		announced = append(announced, l.Addr().String())
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				dialed.Add(1)
				_ = conn.Close()
			}
		}()
	}
	own := kvtest.Must(t, func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	t.Cleanup(func() { _ = own.Close() })
	const times = 3
	ended, welcomed := make(chan struct{}), make(chan struct{}, times)
	defer close(ended)
	go func() {
		for i := range times {
			conn, err := own.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // the last one stays
			if welcome(conn, announced); i < times-1 {
				_ = conn.Close()
			}
			welcomed <- struct{}{}
		}
		<-ended
	}()
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{own.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range times {
		kvtest.Receive(t, welcomed)
	}
	if n := dialed.Load(); n >= times {
		t.Errorf("%d others were tried before the own server was, %d times", n, times)
	}
}

// TestAnnouncedServersAreUsed if the configured server is gone.
func TestAnnouncedServersAreUsed(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, "")
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{cluster[0].URL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	kvtest.Eventually(t, "the others are announced", func() (bool, string) { return len(nc.DiscoveredServers()) == 2, fmt.Sprint(nc.DiscoveredServers()) })
	for range 2 {
		gone := nc.ConnectedUrl()
		for _, s := range cluster {
			if s.URL() == gone {
				s.Stop()
			}
		}
		kvtest.Eventually(t, "another is used", func() (bool, string) {
			now := nc.ConnectedUrl()
			return nc.IsConnected() && now != gone, now
		})
	}
}
