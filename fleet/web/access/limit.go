package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is how often an address may fail to sign in within a window.
	maxFailures = 10
	window      = time.Minute
	// maxAddresses bounds those that are counted; beyond it all others count as one.
	maxAddresses = 10_000
)

// failures counts failed attempts to sign in by address. Tokens cannot be guessed, so
// those that are valid pass all the same: nobody can lock others out who share an address.
type failures struct {
	mu    sync.Mutex
	since time.Time
	by    map[netip.Prefix]int
}

// add counts an attempt, and reports whether the address had too many.
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

// networkOf returns the address, or for IPv6 the network that one customer has.
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
