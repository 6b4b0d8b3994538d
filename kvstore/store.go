package kvstore

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotProvisioned is a bucket or stream that is missing or not configured as
// muster needs it. The remedy is `muster fleet init`, which an operator runs.
var ErrNotProvisioned = errors.New("NATS is not provisioned for muster")

// Store is one fleet's data on a NATS connection. It creates nothing. Its
// methods may be called from several goroutines. They wrap context errors and
// those of nats.go, ErrNotPermitted where the server denies something, and
// ErrFormat.
type Store struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	names Names

	denials denials
	binding binding
}

// New returns the store of a fleet without asking the server anything, so that a
// node can start while NATS is away.
func New(nc *nats.Conn, prefix string) (*Store, error) {
	names, err := NewNames(prefix)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(RequestTimeout))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}

	s := &Store{nc: nc, js: js, names: names, binding: newBinding(names)}
	s.denials.listen(nc)

	return s, nil
}

// Names returns the names of the fleet.
func (s *Store) Names() Names { return s.names }

// Away returns why the server cannot be asked now, nil when it can. A client that
// was never connected has another error for a message with headers.
func (s *Store) Away() error {
	switch {
	case s.nc.IsClosed():
		return nats.ErrConnectionClosed
	case !s.nc.IsConnected():
		return nats.ErrDisconnected
	default:
		return nil
	}
}

// Conn returns the connection.
func (s *Store) Conn() *nats.Conn { return s.nc }

// JetStream returns JetStream on the connection.
func (s *Store) JetStream() jetstream.JetStream { return s.js }
