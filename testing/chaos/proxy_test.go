package chaos

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// oneDirectionLost has the network lose or delay what goes in one direction, between the
// agent and the server.
func oneDirectionLost(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	p := startProxy(t, srv.URL()[len("nats://"):])
	w := newWorld(t, r, 10, "nats://"+p.listener.Addr().String(), store)
	w.pardons.disorder = true
	w.during(func() {
		for range 4 {
			w.pass(200 * time.Millisecond)
			toServer, lost := w.rand.IntN(2) == 0, w.rand.IntN(2) == 0
			p.block(toServer, lost)
			w.pass(500 * time.Millisecond)
			p.unblock()
		}
	})
	w.judge()
	w.end()
}

// proxy passes on connections to a server.
type proxy struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu   sync.Mutex
	free *sync.Cond
	// blocked states whether each direction stalls; lossy, whether its data is lost.
	blocked map[bool]bool
	lossy   bool
	conns   map[net.Conn]bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, blocked: map[bool]bool{}, conns: map[net.Conn]bool{}}
	p.free = sync.NewCond(&p.mu)
	p.open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.open.Go(func() { p.pass(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.block(true, true) // which ends the connections that are blocked
		p.unblock()
		p.closeAll()
		p.open.Wait()
	})

	return p
}

// pass passes one connection on until one of its ends is closed.
func (p *proxy) pass(client net.Conn) {
	upstream, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client], p.conns[upstream] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(upstream, client, true) })
	both.Go(func() { p.copy(client, upstream, false) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, upstream)
	p.mu.Unlock()
}

func (p *proxy) copy(to io.WriteCloser, from io.ReadCloser, toServer bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.admits(toServer) {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// admits waits until a direction is open, or reports that the data is lost.
func (p *proxy) admits(toServer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.blocked[toServer] {
		if p.lossy {
			return false
		}
		p.free.Wait()
	}

	return true
}

// block has one direction delayed, or lost.
func (p *proxy) block(toServer, lossy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked[toServer], p.lossy = true, lossy
	p.free.Broadcast()
}

// unblock opens both directions; connections that have lost something end.
func (p *proxy) unblock() {
	p.mu.Lock()
	lossy := p.lossy
	clear(p.blocked)
	p.lossy = false
	p.free.Broadcast()
	p.mu.Unlock()
	if lossy {
		p.closeAll()
	}
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
