package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is the number of failed attempts of an address within a window.
	maxFailures = 10
	window      = time.Minute
	// maxAddresses limits the counted addresses; all further addresses count as one.
	maxAddresses = 10_000
)

// failures counts failed attempts to sign in by address. Tokens cannot be guessed, so valid tokens always pass: one
// user of a shared address cannot lock out others.
type failures struct {
	mu    sync.Mutex
	since time.Time
	by    map[netip.Prefix]int
}

// add counts an attempt, and reports whether the address made too many.
func (f *failures) add(remote string, now time.Time) (tooMany bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil || now.Sub(f.since) >= window || now.Before(f.since) {
		f.by, f.since = map[netip.Prefix]int{}, now
	}
	network := networkOf(remote)
	if _, known := f.by[network]; !known && len(f.by) >= maxAddresses {
		network = netip.Prefix{}
	}
	f.by[network]++

	return f.by[network] > maxFailures
}

// networkOf returns an IPv4 address, or the /64 network of an IPv6 address.
func networkOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	network, _ := ip.Prefix(bits)

	return network
}
