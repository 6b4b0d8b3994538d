package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Settling is how long after this connection those of the nodes may take to be made again, see
// package connect.
const Settling = 6 * time.Second

// awayCheck is how often a lost connection is looked at.
const awayCheck = 100 * time.Millisecond

// reconnection is when a connection was last made again.
type reconnection struct{ at atomic.Pointer[time.Time] }

// listen notes when a connection is made again, and passes it on to its handler.
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

// Reconnected returns when the connection was last made again after a loss, zero for never.
func (s *Store) Reconnected() time.Time {
	if at := s.reconnected.at.Load(); at != nil {
		return *at
	}

	return time.Time{}
}

// IsOutage is the function IsOutage as a method, for packages that do not import kvstore.
func (*Store) IsOutage(err error) bool { return IsOutage(err) }

// IsOutage reports whether an error is one of a server that is away, or elects a leader: what failed may be tried
// again.
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

// unavailable is the code of what a server of JetStream cannot do now.
const unavailable = 503

// AwaitConnection waits while the server is away. The error is that of Away, and that of the context.
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
