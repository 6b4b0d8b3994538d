package connect

import (
	"net"

	"github.com/nats-io/nats.go"
)

// checked has everything checked that servers send, also where a context has a dialer of
// its own.
func checked(opts *nats.Options) error {
	d := dialer{opts.CustomDialer}
	if d.CustomDialer == nil {
		d.CustomDialer = &net.Dialer{Timeout: opts.Timeout}
	}
	opts.CustomDialer = d

	return nil
}

// dialer makes checked connections.
type dialer struct{ nats.CustomDialer }

// Dial returns a connection that checks what it reads.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.CustomDialer.Dial(network, address)
	if err != nil {
		return nil, err
	}

	return &checkedConn{Conn: conn}, nil
}

// SkipTLSHandshake reports whether the dialer makes TLS itself.
func (d dialer) SkipTLSHandshake() bool {
	own, ok := d.CustomDialer.(interface{ SkipTLSHandshake() bool })

	return ok && own.SkipTLSHandshake()
}

// checkedConn checks what a server sends, where that can be seen: not within TLS, which
// only the server that the certificate names can write, and not within a web socket.
type checkedConn struct {
	net.Conn
	protocol protocol
	// begun is set once something was sent; sealed, where that was not the protocol of
	// NATS.
	begun, sealed bool
}

// Write writes to the server. The client writes first before it reads and writes at the
// same time.
func (c *checkedConn) Write(b []byte) (int, error) {
	if !c.begun && len(b) > 0 {
		c.begun, c.sealed = true, b[0] != 'C' // CONNECT
	}

	return c.Conn.Write(b)
}

// Read reads from the server. The error wraps ErrProtocol for what breaks the protocol.
func (c *checkedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.sealed {
		return n, err
	}
	if wrong := c.protocol.check(b[:n]); wrong != nil {
		return 0, wrong
	}

	return n, err
}
