package requests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Limits for the answers of one node to one question. A node needs three small answers.
const (
	maxAnswers     = 32
	maxAnswerBytes = 2 << 20
)

// lossCheck is the interval of connection checks while no answer arrives.
const lossCheck = time.Second

// ErrLost reports that answers may be lost, because the connection was lost or answers arrived faster
// than they were read. Ask continues after it.
var ErrLost = errors.New("answers may be lost")

// received is one element that Ask yields. last marks the final error.
type received struct {
	reply Reply
	err   error
	last  bool
}

// answers buffers the answers to one question, so that they are read as fast as they arrive. The
// server closes slow connections.
type answers struct {
	arrived chan struct{}

	mu      sync.Mutex
	waiting []received
	// sent counts the answers of each node. Only read uses it.
	sent map[string]sent
	// lost reports whether a loss was recorded. Only read uses it.
	lost bool
}

// sent counts the answers of a node.
type sent struct{ count, bytes int }

// isTooMuch reports whether further answers of the node are dropped.
func (s sent) isTooMuch() bool { return s.count > maxAnswers || s.bytes > maxAnswerBytes }

func newAnswers() *answers {
	return &answers{arrived: make(chan struct{}, 1), sent: map[string]sent{}}
}

// next waits for an answer. ok is false if the context has ended.
func (a *answers) next(ctx context.Context) (out received, ok bool) {
	for {
		a.mu.Lock()
		if len(a.waiting) > 0 {
			out, a.waiting = a.waiting[0], a.waiting[1:]
			a.mu.Unlock()
			return out, true
		}
		a.mu.Unlock()
		select {
		case <-a.arrived:
		case <-ctx.Done():
			return out, false
		}
	}
}

func (a *answers) add(one received) {
	a.mu.Lock()
	a.waiting = append(a.waiting, one)
	a.mu.Unlock()
	select {
	case a.arrived <- struct{}{}:
	default:
	}
}

// addReply adds an answer of a node. If the node exceeds its limits, addReply adds one error instead
// and drops later answers.
func (a *answers) addReply(r Reply) {
	if r.Node != "" {
		s := a.sent[r.Node]
		if s.isTooMuch() {
			return
		}
		s.count, s.bytes = s.count+1, s.bytes+len(r.Data)+len(r.Problem)
		a.sent[r.Node] = s
		if s.isTooMuch() {
			r = Reply{Node: r.Node, Flood: true, Problem: fmt.Sprintf("a flood of answers: more than %d, or %d MiB; the rest is dropped", maxAnswers, maxAnswerBytes>>20)}
		}
	}
	a.add(received{reply: r})
}

// addLoss adds the error that answers may be lost, once.
func (a *answers) addLoss(err error) {
	if !a.lost {
		a.lost = true
		a.add(received{err: fmt.Errorf("%w: %w", ErrLost, err)})
	}
}

// read reads answers until the context ends or the connection is closed, and sends due requests again.
// It continues after a lost message or connection, because the client reconnects and subscribes again.
// reconnects is the number of reconnects before the question was sent.
func (s Client) read(ctx context.Context, sub *nats.Subscription, q question, early int, reconnects uint64, to *answers, again repeater) {
	nc := s.store.Conn()
	heard := time.Now()
	for count := 0; ; {
		wait, done := context.WithTimeout(ctx, lossCheck)
		m, err := sub.NextMsgWithContext(wait)
		done()
		if s.store.Away() == nil {
			// A failed publish is lost with the connection, and repeated later.
			_ = s.publish(again.due(time.Now()), q.reply)
		}
		if !nc.IsClosed() && (!nc.IsConnected() || nc.Stats().Reconnects != reconnects) {
			to.addLoss(nats.ErrDisconnected)
		}
		switch {
		case err == nil:
			heard = time.Now()
			if r, ok := readReply(q, m); ok {
				again.answered(r.Node)
				to.addReply(r)
			}
		case errors.Is(err, nats.ErrSlowConsumer):
			to.addLoss(err)
			continue
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			if time.Since(heard) >= repeatEvery {
				s.store.LeaveSilent(ctx)
				heard = time.Now()
			}
			continue
		case errors.Is(err, nats.ErrNoResponders) && count == 0 && early > 0:
			to.add(received{err: ErrNobody, last: true})
			return
		case errors.Is(err, nats.ErrNoResponders):
			// Another client can send this status too. It says nothing about other nodes.
		default:
			to.add(received{err: err, last: true})
			return
		}
		count++
	}
}
