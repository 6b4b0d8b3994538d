package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// repeatAfter is the time without an answer after which a request is sent again. In a cluster, the server that received
	// it may hang, and the next request may reach another server.
	repeatAfter = 2 * time.Second
	// readAgain is how long a read waits then: the servers choose at random, and may choose the hung one again.
	readAgain = 500 * time.Millisecond
	// pongAfter is how long the connected server has to answer a ping.
	pongAfter = time.Second
	// publishTimeout is how long a message may take to be stored: the election of a leader takes up to 9 s.
	publishTimeout = 12 * time.Second
)

// repeat calls ask until a call is answered or ctx ends. While the first call has no answer it calls ask again, after
// repeatAfter and then after each pause; all calls wait for an answer at the same time. ask calls heard when answers
// arrive, which ends the calls. The client leaves a silent server for another one.
func repeat[T any](ctx context.Context, s *Store, pause time.Duration, ask func(ctx context.Context, heard func()) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	again := time.NewTimer(repeatAfter)
	defer again.Stop()
	call := func() {
		calls.Go(func() {
			value, err := ask(ctx, func() { again.Stop() })
			select {
			case results <- result{value, err}:
			case <-ctx.Done():
			}
		})
	}
	call()
	for {
		select {
		case r := <-results:
			if !s.isUnanswered(r.err) {
				return r.value, r.err
			}
			again.Reset(readAgain)
		case <-again.C:
			calls.Go(func() { s.leaveSilent(ctx) })
			call()
			again.Reset(pause)
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// isUnanswered reports whether a request had no answer and can be sent again. An answer may be lost with a connection, and
// the first of two messages with one id may be in progress.
func (s *Store) isUnanswered(err error) bool {
	const duplicateInProgress jetstream.ErrorCode = 10158
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return !s.nc.IsClosed()
	default:
		return errors.As(err, &refused) && refused.ErrorCode == duplicateInProgress
	}
}

// leaveSilent connects to another server if the connected one does not answer a ping.
func (s *Store) leaveSilent(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pongAfter)
	defer cancel()
	before := s.nc.Stats().Reconnects
	silent := errors.Is(s.nc.FlushWithContext(ctx), context.DeadlineExceeded)
	if silent && s.nc.IsConnected() && s.nc.Stats().Reconnects == before && len(s.nc.Servers()) > 1 {
		_ = s.nc.ForceReconnect() // an error is of a closed connection, which the next call returns
	}
}

// unanswered adds the connected server to the error of a request without an answer, and whether that server still answers.
func (s *Store) unanswered(err error) error {
	name := s.nc.ConnectedServerName()
	switch {
	case name == "":
		return err
	case s.nc.FlushTimeout(pongAfter) != nil:
		return fmt.Errorf("%w: the server %s does not answer", err, name)
	default:
		return fmt.Errorf("%w: the server %s answers, but JetStream does not: check /healthz of each server", err, name)
	}
}
