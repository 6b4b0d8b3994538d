package loopback_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/loopback"
)

// Servers may listen there, one after the other.
func TestAddressTakesServers(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t).String()
	refused := func() {
		t.Helper()
		if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial = %v, %v", conn, err)
		}
	}
	for range 2 {
		refused()
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
	refused()
}

// Other requests for a free port get another one.
func TestAddressIsGivenToNobody(t *testing.T) {
	t.Parallel()
	mine := map[string]bool{}
	for range 100 {
		mine[loopback.Address(t).String()] = true
	}
	if len(mine) != 100 {
		t.Errorf("%d addresses", len(mine))
	}
	for range 20_000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if mine[l.Addr().String()] {
			t.Errorf("%s was given to another", l.Addr())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
