package access

import (
	"net"
	"net/netip"
	"sync"
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
