// Package kvstore contains the names of all buckets, streams, keys and subjects of a fleet on NATS,
// and reads and writes them. Each bucket and stream has a small type, such as Assignments or Reports,
// on top of Store. Only this package and those below it use JetStream.
package kvstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/jsm.go/api"
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
	nc, err := connect.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := New(nc, prefix, APIPrefix(o.API()))
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

// Settling is how long nodes take to reconnect after a restart of the server.
const Settling = 6 * time.Second

const awayCheck = 100 * time.Millisecond

type reconnection struct{ at atomic.Pointer[time.Time] }

// listen records each reconnect and then calls the previous handler.
func (r *reconnection) listen(nc *nats.Conn) {
	before := nc.ReconnectHandler()
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		now := time.Now()
		r.at.Store(&now)
		if before != nil {
			before(nc)
		}
	})
}

// Reconnected returns the time of the last reconnect, or zero.
func (s *Store) Reconnected() time.Time {
	if at := s.reconnected.at.Load(); at != nil {
		return *at
	}

	return time.Time{}
}

// IsOutage is the function IsOutage as a method, for packages that do not import kvstore.
func (*Store) IsOutage(err error) bool { return IsOutage(err) }

// IsOutage reports whether a server is away or elects a leader. The operation can be retried.
func IsOutage(err error) bool {
	for _, outage := range []error{nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrTimeout, context.DeadlineExceeded, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, ErrUnanswered} {
		if errors.Is(err, outage) {
			return true
		}
	}
	var asked *jetstream.APIError
	var listed api.ApiError

	return errors.As(err, &asked) && asked.Code == unavailable || errors.As(err, &listed) && listed.Code == unavailable
}

const unavailable = 503

// AwaitConnection waits while the server is away. The error wraps the errors of Away and ctx.
func (s *Store) AwaitConnection(ctx context.Context) error {
	again := time.NewTicker(awayCheck)
	defer again.Stop()
	for {
		away := s.Away()
		if away == nil || s.nc.IsClosed() {
			return away
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", away, context.Cause(ctx))
		}
	}
}

// MaxRetry is the factor from the first to the longest pause between retries.
const MaxRetry = 30

// Pause waits for d, or returns the error of the context.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// WholeSeconds rounds up to whole seconds, at least one. The server rejects other TTLs.
func WholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (min(d, math.MaxInt64-time.Second) + time.Second - 1).Truncate(time.Second))
}

// LagTries limits the reads of a replica that may lag.
const LagTries = 6

// LagWait returns the wait for a lagging replica after a number of retries.
func LagWait(again int) time.Duration { return 20 * time.Millisecond << again }

// UntilCurrent calls read with growing waits until it is done, because a lagging replica returns old
// data. last marks the final call.
func UntilCurrent(ctx context.Context, read func(last bool) (done bool, err error)) error {
	for again := 0; ; again++ {
		if done, err := read(again == LagTries-1); done || err != nil {
			return err
		}
		if err := Pause(ctx, LagWait(again)); err != nil {
			return err
		}
	}
}
