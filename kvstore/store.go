package kvstore

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
)

// ErrNotProvisioned is model.ErrNotProvisioned.
var ErrNotProvisioned = model.ErrNotProvisioned

// Store reads and writes the data of one fleet over a NATS connection. It creates no buckets or
// streams. Its methods are safe for concurrent use. Their errors wrap those of the context and of
// nats.go, model.ErrNotPermitted for a denial, and ErrFormat.
type Store struct {
	nc     *nats.Conn
	names  Names
	places *APIFinder
	user   string

	denials     Denials
	binding     binding
	refused     refused
	sizes       Sizes
	reconnected reconnection
	silent      atomic.Pointer[map[string]time.Time]
	onSilent    atomic.Pointer[func(server string)]
	// hangs is the time until which a server counts as hung, in nanoseconds since 1970.
	hangs atomic.Int64
}

// Open connects to NATS like connect.Dial and returns the store of a fleet. The caller closes its
// connection.
func Open(ctx context.Context, o connect.Options, prefix string) (*Store, error) {
	if _, err := NewNames(prefix); err != nil {
		return nil, err
	}
	nc, api, err := connect.DialAPI(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := New(nc, prefix, APIPrefix(api))
	if err != nil {
		nc.Close()
	}

	return s, err
}

// New returns the store of a fleet on a connection. It sends no request, so a node can start while
// NATS is away. An empty api makes the store find the prefix of the JetStream API later.
func New(nc *nats.Conn, prefix string, api APIPrefix) (*Store, error) {
	names, err := NewNames(prefix)
	if err != nil {
		return nil, err
	}
	places, err := newAPIFinder(nc, api, RequestTimeout)
	if err != nil {
		return nil, err
	}
	inbox, _, _ := strings.Cut(nc.NewInbox(), ".")
	s := &Store{nc: nc, names: names, places: places, binding: newBinding(names), user: nameOf(inbox)}
	s.sizes.nc = nc
	s.reconnected.listen(nc)
	s.denials.listen(nc, DenialContext{
		Inbox: inbox, Manifests: KVSubject(names.Manifests(), ""), Commands: names.prefix + ".command.", Control: KVSubject(names.Control(), ""), Bundles: ObjectStream(names.Bundles()), Whole: []string{KVStream(names.Manifests()), KVStream(names.Control()), KVStream(names.Nodes()), names.Reports()},
		States: KVSubject(names.Nodes(), ""), Node: s.denials.nodeCommand, Mistaken: places.Mistaken,
	}, func(subject string) bool { return places.IsExpected(subject) || names.IsCheck(subject) })

	return s, nil
}

// Names returns the names of the fleet.
func (s *Store) Names() Names { return s.names }

// User returns the name in the inbox prefix of the connection, which its permissions are for, or "".
func (s *Store) User() string { return s.user }

// Places returns the finder of the JetStream API prefix.
func (s *Store) Places() *APIFinder { return s.places }

// JetStream returns the JetStream client of the connection.
func (s *Store) JetStream() jetstream.JetStream { return s.places.JetStream() }

// Away returns why the server cannot be reached now, or nil. Without this check, a client that was
// never connected reports a different error for messages with headers.
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

// CheckServer checks the version of the connected server. It returns nil while disconnected.
func CheckServer(nc *nats.Conn) error { return connect.CheckServer(nc.ConnectedServerVersion()) }

// Conn returns the connection.
func (s *Store) Conn() *nats.Conn { return s.nc }
