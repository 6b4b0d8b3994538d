package requests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// One node may send so much to one question; it needs three small answers.
const (
	maxAnswers     = 32
	maxAnswerBytes = 2 << 20
)

// lossCheck is how often the connection is checked while no answer arrives.
const lossCheck = time.Second

// ErrLost is that answers may be lost, because the connection was, or because they
// arrived faster than they could be read. The question goes on.
var ErrLost = errors.New("answers may be lost")

// received is one element of what Ask yields; last is the error that ends it.
type received struct {
	reply Reply
	err   error
	last  bool
}

// answers keeps the answers to one question for whoever uses them, so that they are
// read as fast as they arrive: the server closes connections that are slow.
type answers struct {
	arrived chan struct{}

	mu      sync.Mutex
	waiting []received
	// sent is what each node has sent. Only read uses it.
	sent map[string]sent
	// lost is set when a loss was noted. Only read uses it.
	lost bool
}

// sent is how much a node has sent.
type sent struct{ count, bytes int }

// isTooMuch reports whether more of the node is dropped.
func (s sent) isTooMuch() bool { return s.count > maxAnswers || s.bytes > maxAnswerBytes }

func newAnswers() *answers {
	return &answers{arrived: make(chan struct{}, 1), sent: map[string]sent{}}
}

// next waits for an answer; ok is false when the context ended.
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

// addReply adds what a node sent, or once that it sends too much.
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

// addLoss adds that answers may be lost, once.
func (a *answers) addLoss(err error) {
	if !a.lost {
		a.lost = true
		a.add(received{err: fmt.Errorf("%w: %w", ErrLost, err)})
	}
}

// read reads answers until the context or the connection ends. A lost message is not
// the end, and nor is a lost connection: the client makes the next one, and
// subscribes again. What is due is sent again. The connection had been made again reconnects times before the
// question was sent.
func (s Client) read(ctx context.Context, sub *nats.Subscription, q question, early int, reconnects uint64, to *answers, again repeater) {
	nc := s.store.Conn()
	heard := time.Now()
	for count := 0; ; {
		wait, done := context.WithTimeout(ctx, lossCheck)
		m, err := sub.NextMsgWithContext(wait)
		done()
		if s.store.Away() == nil {
			// One that cannot be sent is lost with the connection, and so repeated.
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
			// Whoever listens can send the same, and speaks for nobody else.
		default:
			to.add(received{err: err, last: true})
			return
		}
		count++
	}
}
