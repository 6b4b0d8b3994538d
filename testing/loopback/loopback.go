// Package loopback gives a test an address that no other process takes.
package loopback

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Address returns an address on loopback that is the test's own until it ends. No other
// process gets its port, and servers may listen there, one after the other; while none
// does, connections are refused.
func Address(tb testing.TB) netip.AddrPort {
	tb.Helper()
	// A socket that does not listen holds the port.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = unix.Close(fd) })
	host := [4]byte{127, 0, 0, 1}
	// Listeners of Go have the option too: these may have the same port.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: host})
	}
	if err != nil {
		tb.Fatal(err)
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		tb.Fatal(err)
	}

	return netip.AddrPortFrom(netip.AddrFrom4(host), uint16(bound.(*unix.SockaddrInet4).Port))
}
