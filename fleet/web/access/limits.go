package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
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

// add returns the connection to close for a new one, nil for none.
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

func (f *fair) remove(c *fairConn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.open[c.network]
	i := slices.Index(all, c)
	if i < 0 {
		return
	}
	f.count--
	if f.open[c.network] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(f.open, c.network)
	}
}

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

// ErrNoPlace means that a quota is exhausted.
var ErrNoPlace = errors.New("no place is left")

// Quota limits how many operations run at the same time, in total and per user. An empty user has no limit of its own.
// Create it with NewQuota. It may be used by several goroutines.
type Quota struct {
	what      string
	all       *semaphore.Weighted
	most, own int

	mu sync.Mutex
	// shares are the shares of users who run an operation or wait.
	shares map[string]*share
}

// share is the share of a user; users counts the operations that run or wait, guarded by Quota.mu.
type share struct {
	*semaphore.Weighted
	users int
}

// NewQuota returns a quota of at most most operations, and at most own per user. Messages use the plural noun what.
func NewQuota(what string, most, own int) *Quota {
	return &Quota{what: what, all: semaphore.NewWeighted(int64(most)), most: most, own: own, shares: map[string]*share{}}
}

// Wait waits until a user may run an operation, and returns false if ctx ends before. Call leave after the operation.
func (q *Quota) Wait(ctx context.Context, u User) (leave func(), ok bool) {
	leave, _, ok = q.enter(u.Share(), func(s *semaphore.Weighted) bool { return s.Acquire(ctx, 1) == nil })

	return leave, ok
}

// Take begins an operation of a user. Call leave after it. The error wraps ErrNoPlace and contains the remedy.
func (q *Quota) Take(u User) (leave func(), err error) {
	leave, isOwn, ok := q.enter(u.Share(), func(s *semaphore.Weighted) bool { return s.TryAcquire(1) })
	switch {
	case ok:
		return leave, nil
	case isOwn && u.Share() != "":
		return nil, fmt.Errorf("%w: %d %s of %s are open, which is the most for one user: close one", ErrNoPlace, q.own, q.what, u.Name)
	default:
		return nil, fmt.Errorf("%w: %d %s are open, which is the most: try again", ErrNoPlace, q.most, q.what)
	}
}

// enter acquires the share of a user, and then the quota. isOwn reports that the share is exhausted.
func (q *Quota) enter(user string, acquire func(*semaphore.Weighted) bool) (leave func(), isOwn, ok bool) {
	of := q.share(user)
	if !acquire(of.Weighted) {
		q.done(user, of)
		return nil, true, false
	}
	release := func() {
		of.Release(1)
		q.done(user, of)
	}
	if !acquire(q.all) {
		release()
		return nil, false, false
	}

	return func() {
		q.all.Release(1)
		release()
	}, false, true
}

func (q *Quota) share(user string) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.shares[user]
	if s == nil {
		size := q.own
		if user == "" {
			size = q.most
		}
		s = &share{Weighted: semaphore.NewWeighted(int64(size))}
		q.shares[user] = s
	}
	s.users++

	return s
}

// done forgets a share without operations.
func (q *Quota) done(user string, s *share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(q.shares, user)
	}
}
