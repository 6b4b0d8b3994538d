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
)

// Connection is a NATS connection that knows the denials of its user, the prefix of the JetStream API, and servers that do
// not answer. Its methods are safe for concurrent use.
type Connection struct {
	Conn *nats.Conn
	// API finds the prefix of the JetStream API.
	API     *APIFinder
	Denials Denials
	// User is the name in the inbox prefix, which the permissions are for, or "".
	User string

	reconnected atomic.Pointer[time.Time]
	silent      atomic.Pointer[map[string]time.Time]
	onSilent    atomic.Pointer[func(server string)]
	// hangs is the time until which a server counts as hung, in nanoseconds since 1970.
	hangs atomic.Int64
}

// Store reads and writes the data of one fleet over a NATS connection. It creates no buckets or
// streams. Its methods are safe for concurrent use. Their errors wrap those of the context and of
// nats.go, model.ErrNotPermitted for a denial, and ErrFormat.
type Store struct {
	*Connection
	*binding
	Names Names
	Sizes Sizes

	refused refused
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
// NATS is away. An empty prefix api makes the store find the prefix of the JetStream API later.
func New(nc *nats.Conn, prefix string, api APIPrefix) (*Store, error) {
	names, err := NewNames(prefix)
	if err != nil {
		return nil, err
	}
	finder, err := newAPIFinder(nc, api, RequestTimeout)
	if err != nil {
		return nil, err
	}
	inbox, _, _ := strings.Cut(nc.NewInbox(), ".")
	s := &Store{Connection: &Connection{Conn: nc, API: finder, User: nameOf(inbox)}, Names: names, Sizes: Sizes{nc: nc}}
	s.binding = newBinding(s)
	s.listen()
	s.Denials.listen(nc, DenialContext{Inbox: inbox, Names: names, Mistaken: finder.Mistaken}, func(subject string) bool { return finder.IsExpected(subject) || names.isCheck(subject) })

	return s, nil
}

// JetStream returns the JetStream client for the prefix in use.
func (c *Connection) JetStream() jetstream.JetStream { return c.API.JetStream() }

// Away returns why the server cannot be reached now, or nil. Without this check, a client that was
// never connected reports a different error for messages with headers.
func (c *Connection) Away() error {
	switch {
	case c.Conn.IsClosed():
		return nats.ErrConnectionClosed
	case !c.Conn.IsConnected():
		return nats.ErrDisconnected
	default:
		return nil
	}
}

// Settling is how long nodes take to reconnect after a restart of the server.
const Settling = 6 * time.Second

const awayCheck = 100 * time.Millisecond

// listen records each reconnect and then calls the previous handler.
func (c *Connection) listen() {
	before := c.Conn.ReconnectHandler()
	c.Conn.SetReconnectHandler(func(nc *nats.Conn) {
		now := time.Now()
		c.reconnected.Store(&now)
		if before != nil {
			before(nc)
		}
	})
}

// Reconnected returns the time of the last reconnect, or zero.
func (c *Connection) Reconnected() time.Time {
	if at := c.reconnected.Load(); at != nil {
		return *at
	}

	return time.Time{}
}

// IsOutage is the function IsOutage as a method, for packages that do not import kvstore.
func (*Connection) IsOutage(err error) bool { return IsOutage(err) }

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
func (c *Connection) AwaitConnection(ctx context.Context) error {
	again := time.NewTicker(awayCheck)
	defer again.Stop()
	for {
		away := c.Away()
		if away == nil || c.Conn.IsClosed() {
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
