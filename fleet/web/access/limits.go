package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// writeBuffer limits the unread bytes per connection in the kernel; the default is megabytes.
const writeBuffer = 256 << 10

// fair is a listener with a maximum number of connections. A further connection closes the oldest one of the network
// that has most, so one network cannot keep others out.
type fair struct {
	net.Listener
	most int

	mu    sync.Mutex
	count int
	// open has the connections of each network, the oldest first.
	open map[netip.Prefix][]*fairConn
}

func newFair(l net.Listener, most int) *fair {
	return &fair{Listener: l, most: most, open: map[netip.Prefix][]*fairConn{}}
}

// Accept waits for the next connection.
func (f *fair) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, is := c.(*net.TCPConn); is {
		_ = tcp.SetWriteBuffer(writeBuffer) // after an error the default stays
	}
	out := &fairConn{Conn: c, of: f, network: networkOf(c.RemoteAddr().String())}
	if over := f.add(out); over != nil {
		_ = over.Close()
	}

	return out, nil
}

// add adds a connection, and returns the connection to close for it, nil for none.
func (f *fair) add(c *fairConn) (over *fairConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[c.network] = append(f.open[c.network], c)
	if f.count++; f.count <= f.most {
		return nil
	}
	largest := f.open[c.network]
	for network, all := range f.open {
		// Prefer another network with as many connections, so that a new network is let in.
		if len(all) > len(largest) || len(all) == len(largest) && network != c.network {
			largest = all
		}
	}

	return largest[0]
}

// remove removes a connection, once.
func (f *fair) remove(c *fairConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.open[c.network]
	for i := range all {
		if all[i] != c {
			continue
		}
		f.count--
		if all = append(all[:i:i], all[i+1:]...); len(all) == 0 {
			delete(f.open, c.network)
			return
		}
		f.open[c.network] = all
		return
	}
}

// fairConn is a connection of a fair listener.
type fairConn struct {
	net.Conn
	of      *fair
	network netip.Prefix
}

// Close ends the connection.
func (c *fairConn) Close() error {
	c.of.remove(c)

	return c.Conn.Close()
}

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

// ErrNoPlace means that all places are taken.
var ErrNoPlace = errors.New("no place is left")

// Places limit how many things are open at the same time, in total and per user. Create them with NewPlaces. They may
// be used by several goroutines.
type Places struct {
	what      string
	most, own int

	mu    sync.Mutex
	taken int
	of    map[string]int
}

// NewPlaces returns most places, and at most own per user. Messages use the plural noun what.
func NewPlaces(what string, most, own int) *Places {
	return &Places{what: what, most: most, own: own, of: map[string]int{}}
}

// Take takes a place for a user until leave is called, once. Without sign-in there is no limit per user. The error
// wraps ErrNoPlace and contains the remedy.
func (p *Places) Take(u User) (leave func(), err error) {
	share := u.Share()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case u.Name != "" && p.of[share] >= p.own:
		return nil, fmt.Errorf("%w: %d %s of %s are open, which is the most for one user: close one", ErrNoPlace, p.own, p.what, u.Name)
	case p.taken >= p.most:
		return nil, fmt.Errorf("%w: %d %s are open, which is the most: try again", ErrNoPlace, p.most, p.what)
	}
	p.taken++
	p.of[share]++

	return func() { p.leave(share) }, nil
}

func (p *Places) leave(share string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[share]--; p.of[share] == 0 {
		delete(p.of, share)
	}
}

// Turns limit how many operations run at the same time, in total and per user. Others wait. Create them with NewTurns. They
// may be used by several goroutines.
type Turns struct {
	all       *semaphore.Weighted
	most, own int64

	mu sync.Mutex
	// shares are the shares of users who run an operation or wait.
	shares map[string]*share
}

// share is the share of a user; users counts the operations that run or wait, guarded by Turns.mu.
type share struct {
	*semaphore.Weighted
	users int
}

// NewTurns returns a limit for all users together and for each user.
func NewTurns(all, own int) *Turns {
	return &Turns{all: semaphore.NewWeighted(int64(all)), most: int64(all), own: int64(own), shares: map[string]*share{}}
}

// Enter waits until a user (User.Share) may run an operation, and returns false if ctx ends before. Call leave after the
// operation. An empty user has no limit of its own.
func (p *Turns) Enter(ctx context.Context, user string) (leave func(), ok bool) {
	of := p.share(user)
	if of.Acquire(ctx, 1) != nil {
		p.done(user, of)
		return nil, false
	}
	release := func() {
		of.Release(1)
		p.done(user, of)
	}
	if p.all.Acquire(ctx, 1) != nil {
		release()
		return nil, false
	}

	return func() {
		p.all.Release(1)
		release()
	}, true
}

// share returns the share of a user.
func (p *Turns) share(user string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[user]
	if s == nil {
		size := p.own
		if user == "" {
			size = p.most
		}
		s = &share{Weighted: semaphore.NewWeighted(size)}
		p.shares[user] = s
	}
	s.users++

	return s
}

// done forgets a share without operations.
func (p *Turns) done(user string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.shares, user)
	}
}
