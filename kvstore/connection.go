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

// Settling is the time after a reconnect in which nodes also reconnect.
const Settling = 6 * time.Second

// awayCheck is the interval of connection checks.
const awayCheck = 100 * time.Millisecond

// reconnection holds the time of the last reconnect.
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

// unavailable is the error code of a temporary failure of JetStream.
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
