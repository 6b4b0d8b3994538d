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
	// repeatSoon is the time without an answer after which a read is sent again while a server is known to hang: each read may
	// reach that server.
	repeatSoon = 250 * time.Millisecond
	// hangsFor is how long a server counts as hung after a read that only a repeated request answered.
	hangsFor = time.Minute
	// publishTimeout is how long a message may take to be stored: the election of a leader takes up to 9 s.
	publishTimeout = 12 * time.Second
)

// waits are the times without an answer after which a request is sent a second time, and then each further time.
type waits struct{ first, next time.Duration }

// writeWaits returns the waits of a write, which only the leader of its stream answers.
func writeWaits() waits { return waits{repeatAfter, repeatAfter} }

// readWaits returns the waits of a read. Another server may answer the second request.
func (c *Connection) readWaits() waits {
	silent := c.LastSilentServers()
	if len(silent) > 0 || time.Now().UnixNano() < c.hangs.Load() {
		return waits{repeatSoon, readAgain}
	}

	return waits{repeatAfter, readAgain}
}

// repeat calls ask until a call is answered or ctx ends. While the first call has no answer it calls ask again after
// each wait; all calls wait for an answer at the same time. ask calls heard when answers
// arrive, which ends the calls. The client leaves a silent server for another one.
func repeat[T any](ctx context.Context, c *Connection, w waits, ask func(ctx context.Context, heard func()) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan result)
	count, begun := 0, time.Now()
	again := time.NewTimer(w.first)
	defer again.Stop()
	call := func() {
		count++
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
			if !c.isUnanswered(r.err) {
				if count > 1 {
					c.hangs.Store(time.Now().Add(hangsFor).UnixNano())
				}
				return r.value, r.err
			}
			again.Reset(readAgain)
		case <-again.C:
			if time.Since(begun) >= repeatAfter {
				calls.Go(func() { c.LeaveSilent(ctx) })
			}
			call()
			again.Reset(w.next)
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// isUnanswered reports whether a request had no answer and can be sent again. An answer may be lost with a connection, and
// the first of two messages with one id may be in progress.
func (c *Connection) isUnanswered(err error) bool {
	const duplicateInProgress jetstream.ErrorCode = 10158
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return !c.Conn.IsClosed()
	default:
		return errors.As(err, &refused) && refused.ErrorCode == duplicateInProgress
	}
}

// LeaveSilent connects to another server if the connected one does not answer a ping within a second, and calls the
// function of OnSilent.
func (c *Connection) LeaveSilent(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pongAfter)
	defer cancel()
	name, before := c.Conn.ConnectedServerName(), c.Conn.Stats().Reconnects
	isSilent := errors.Is(c.Conn.FlushWithContext(ctx), context.DeadlineExceeded)
	if !isSilent || !c.Conn.IsConnected() || c.Conn.Stats().Reconnects != before || len(c.Conn.Servers()) < 2 {
		return
	}
	if report := c.onSilent.Load(); report != nil && name != "" {
		(*report)(name)
	}
	_ = c.Conn.ForceReconnect() // an error is of a closed connection, which the next call returns
}

// OnSilent sets the function that LeaveSilent calls with the name of a silent server. It may be called several times for
// one server, from several goroutines.
func (c *Connection) OnSilent(report func(server string)) { c.onSilent.Store(&report) }

// Confirm waits until the server has received all messages that were sent. It leaves a silent server. It returns an error
// if the connection is lost, because messages may be lost with it.
func (c *Connection) Confirm(ctx context.Context) error {
	for {
		limited, cancel := context.WithTimeout(ctx, repeatAfter)
		err := c.Conn.FlushWithContext(limited)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return err
		}
		c.LeaveSilent(ctx)
	}
}

// unanswered adds the connected server to the error of a request without an answer, and whether that server still answers.
func (c *Connection) unanswered(err error) error {
	name := c.Conn.ConnectedServerName()
	switch {
	case name == "":
		return err
	case c.Conn.FlushTimeout(pongAfter) != nil:
		return fmt.Errorf("%w: the server %s does not answer", err, name)
	default:
		return fmt.Errorf("%w: the server %s answers, but JetStream does not: check /healthz of each server", err, name)
	}
}
