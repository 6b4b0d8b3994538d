package connect

import (
	"net"

	"github.com/nats-io/nats.go"
)

// bounded has the connections follow the protocol, also those that a context makes by
// a dialer of its own.
func bounded(opts *nats.Options) error {
	d := dialer{opts.CustomDialer}
	if d.CustomDialer == nil {
		d.CustomDialer = &net.Dialer{Timeout: opts.Timeout}
	}
	opts.CustomDialer = d

	return nil
}

type dialer struct{ nats.CustomDialer }

// Dial dials.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.CustomDialer.Dial(network, address)
	if err != nil {
		return nil, err
	}

	return &boundedConn{Conn: conn}, nil
}

// SkipTLSHandshake reports whether the dialer makes TLS itself.
func (d dialer) SkipTLSHandshake() bool {
	own, ok := d.CustomDialer.(interface{ SkipTLSHandshake() bool })

	return ok && own.SkipTLSHandshake()
}

// boundedConn checks what a server sends, as long as that can be seen: not within TLS,
// where it is the server that the certificate names, and not within a web socket.
type boundedConn struct {
	net.Conn
	protocol protocol
	// begun is set with the first bytes that are sent; sealed, where these begin
	// something else than the protocol of NATS.
	begun, sealed bool
}

// Write writes to the server. What is written first comes before all concurrency.
func (c *boundedConn) Write(b []byte) (int, error) {
	if !c.begun && len(b) > 0 {
		c.begun, c.sealed = true, b[0] != 'C' // CONNECT
	}

	return c.Conn.Write(b)
}

// Read reads what follows the protocol; the error wraps ErrProtocol.
func (c *boundedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.sealed {
		return n, err
	}
	if broken := c.protocol.check(b[:n]); broken != nil {
		return 0, broken
	}

	return n, err
}
