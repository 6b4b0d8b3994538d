package connect

import (
	"net"

	"github.com/nats-io/nats.go"
)

// checked makes the client check everything that servers send. It wraps the dialer of a context.
func checked(opts *nats.Options) error {
	d := dialer{opts.CustomDialer}
	if d.CustomDialer == nil {
		d.CustomDialer = &net.Dialer{Timeout: opts.Timeout}
	}
	opts.CustomDialer = d

	return nil
}

// dialer opens checked connections.
type dialer struct{ nats.CustomDialer }

// Dial opens a connection that checks every read.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.CustomDialer.Dial(network, address)
	if err != nil {
		return nil, err
	}

	return &checkedConn{Conn: conn}, nil
}

// SkipTLSHandshake reports whether the wrapped dialer does the TLS handshake.
func (d dialer) SkipTLSHandshake() bool {
	own, ok := d.CustomDialer.(interface{ SkipTLSHandshake() bool })

	return ok && own.SkipTLSHandshake()
}

// checkedConn checks the bytes that a server sends. It cannot see inside TLS or a WebSocket. Inside
// TLS only the server named in the certificate can write.
type checkedConn struct {
	net.Conn
	protocol protocol
	// begun reports whether the client has sent anything. sealed reports whether the first bytes were
	// not the NATS protocol.
	begun, sealed bool
}

// Write sends bytes to the server. The client writes before its first read, so begun and sealed need
// no lock.
func (c *checkedConn) Write(b []byte) (int, error) {
	if !c.begun && len(b) > 0 {
		c.begun, c.sealed = true, b[0] != 'C' // CONNECT
	}

	return c.Conn.Write(b)
}

// Read reads from the server. The error wraps ErrProtocol if the server breaks the protocol.
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
