package access

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// fakes are connections that are accepted in turn.
type fakes chan net.Conn

func (f fakes) Accept() (net.Conn, error) { return <-f, nil }
func (f fakes) Close() error              { return nil }
func (f fakes) Addr() net.Addr            { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", f.address)
	if err != nil {
		panic(err)
	}

	return at
}

// TestFairConnections: neither one address nor four with all connections lock out others. The oldest
// connection of the largest holder is closed. Addresses of one IPv6 network count as one.
func TestFairConnections(t *testing.T) {
	t.Parallel()
	for _, attackers := range [][]string{{"192.0.2.1:1"}, {"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"}, {"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:3]:1"}} {
		waiting := make(fakes, 1)
		l := newFair(waiting, 100)
		accept := func(address string) (accepted, other net.Conn) {
			t.Helper()
			here, there := net.Pipe()
			waiting <- from{here, address}
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c, there
		}
		var theirs []net.Conn
		for i := range 1000 {
			_, c := accept(attackers[i%len(attackers)])
			theirs = append(theirs, c)
		}
		var mine []net.Conn
		for range 10 {
			accepted, _ := accept("198.51.100.7:1")
			mine = append(mine, accepted)
		}
		for i := range 1000 {
			accept(attackers[i%len(attackers)])
		}
		if l.count != 100 {
			t.Errorf("%d are open", l.count)
		}
		for _, c := range theirs {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("one of the attackers was served")
			}
		}
		for i, c := range mine {
			_ = c.SetReadDeadline(time.Now())
			if _, err := c.Read(make([]byte, 1)); !isTimeout(err) {
				t.Errorf("connection %d ended: %v", i, err)
			}
			_ = c.Close()
			_ = c.Close()
		}
		if l.count != 90 {
			t.Errorf("then %d are open", l.count)
		}
	}
}

// TestFairAmongManyAddresses: where every address has one connection, who comes is let in.
func TestFairAmongManyAddresses(t *testing.T) {
	t.Parallel()
	waiting := make(fakes, 1)
	l := newFair(waiting, 100)
	for i := range 300 {
		here, _ := net.Pipe()
		waiting <- from{here, fmt.Sprintf("[2001:db8:0:%x::1]:1", i)}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now())
		if _, err := c.Read(make([]byte, 1)); !isTimeout(err) {
			t.Fatalf("connection %d ended at once: %v", i, err)
		}
	}
	if l.count != 100 {
		t.Errorf("%d are open", l.count)
	}
}

func isTimeout(err error) bool {
	timeout, is := err.(net.Error)

	return is && timeout.Timeout()
}
