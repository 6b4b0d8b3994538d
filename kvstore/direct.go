package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// RequestTimeout is how long one answer of the server may take: a request lost in
// an outage has none.
const RequestTimeout = 5 * time.Second

// Value is Last for a value that is used: that of a deleted key is
// model.ErrNotFound, too, and the error wraps answer.ErrServerHeaders for one that claims
// to come from elsewhere.
func (s *Store) Value(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.Last(ctx, stream, subject)

	return used(stream, subject, m, err)
}

// used returns a message that was read as a value that is used.
func used(stream, subject string, m Message, err error) (Message, error) {
	switch {
	case err != nil:
		return m, err
	case m.Forged:
		err = m.Refusal()
	case m.Deleted():
		m, err = Message{}, model.ErrNotFound
	default:
		return m, nil
	}

	return m, fmt.Errorf("read %s of %s: %w", subject, stream, err)
}

// ErrLags is a server that answers with less than the leader of the stream has.
var ErrLags = errors.New("the NATS server that answers lags behind the others, try again")

// CurrentValue is Value of CurrentMessage.
func (s *Store) CurrentValue(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.CurrentMessage(ctx, stream, subject)

	return used(stream, subject, m, err)
}

// CurrentMessage is Last as the leader of the stream has it, for a subject that the user may publish to, see Newest: a
// replica that lags is waited for. The error wraps ErrLags where that takes more than a second.
func (s *Store) CurrentMessage(ctx context.Context, stream, subject string) (m Message, err error) {
	newest, err := s.Newest(ctx, subject)
	if err != nil {
		return Message{}, err
	}
	err = UntilCurrent(ctx, func(last bool) (bool, error) {
		m, err = s.Last(ctx, stream, subject)
		switch isNone := errors.Is(err, model.ErrNotFound); {
		case err != nil && !isNone:
			return false, err
		case m.Sequence >= newest: // of none, 0
			return true, err
		case last:
			return false, fmt.Errorf("read %s of %s, sequence %d: %w", subject, stream, newest, ErrLags)
		default:
			return false, nil
		}
	})

	return m, err
}

// Last reads the newest message of a subject, or of all subjects that match a
// wildcard. The error wraps model.ErrNotFound when there is none, and
// answer.ErrWrong or answer.ErrUnreadable. A replica that lags may answer with an older one.
func (s *Store) Last(ctx context.Context, stream, subject string) (Message, error) {
	err := s.Bind(ctx, stream)
	var m Message
	if err == nil {
		var reply *nats.Msg
		reply, err = s.Request(ctx, s.places.InUse().DirectGet(stream, subject), nil)
		if errors.Is(err, nats.ErrNoResponders) {
			reply, err = askOnce(ctx, s.nc, s.places.InUse().DirectGet(stream, subject))
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && s.lacksDirect(ctx, stream, subject) {
			err = nats.ErrNoResponders
		}
		if err == nil {
			m, err = s.refused.decode(Query{Stream: stream, Subject: subject}, reply)
		}
	}
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// lacksDirect reports whether a stream is missing or has no direct get. Last asks only after a timeout: while a client
// subscribes to all subjects, the server does not report "no responders" for a missing stream.
func (s *Store) lacksDirect(ctx context.Context, stream, subject string) bool {
	found, err := s.Infos(ctx, subject)
	info := found[stream]

	return err == nil && !found.hasUnanswered() && (info == nil || !info.Config.AllowDirect)
}

// askOnce returns the one answer to a request. The client takes a message that was
// stored empty, with the status 503 as a header, for the server's word that nobody
// listens: here the answer itself is returned.
func askOnce(ctx context.Context, nc *nats.Conn, subject string) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	answers, stop, err := ask(nc, subject, nil, 1)
	if err != nil {
		return nil, err
	}
	defer stop()
	select {
	case reply := <-answers:
		return reply, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask sends a request and returns the answers, of which there are most at most,
// as they arrive.
func ask(nc *nats.Conn, subject string, body []byte, most int) (answers chan *nats.Msg, stop func(), err error) {
	inbox := nc.NewInbox()
	answers = make(chan *nats.Msg, most)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = sub.Unsubscribe() }
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		stop()
		return nil, nil, err
	}

	return answers, stop, nil
}

// Request sends a read-only request and waits for the answer, for at most RequestTimeout. It sends the request again while
// there is no answer.
func (s *Store) Request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ctx, done := s.denials.Permitted(ctx, To(subject))
	reply, err := repeat(ctx, s, s.readWaits(), func(ctx context.Context, _ func()) (*nats.Msg, error) {
		return s.nc.RequestWithContext(ctx, subject, data)
	})
	if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
		err = s.unanswered(err)
	}
	if mistaken := s.places.Mistaken(subject); mistaken != nil && errors.Is(err, nats.ErrNoResponders) {
		err = mistaken
	}

	return reply, done(err)
}

// refused counts answers that were refused.
type refused struct{ atomic.Uint64 }

// decode decodes an answer to a direct get, and counts what it refuses.
func (r *refused) decode(a Query, reply *nats.Msg) (Message, error) {
	m, err := decodeAnswer(a, reply)
	if m.Forged {
		r.Add(1)
	}

	return m, r.count(err)
}

// count counts an error that is a refused answer, and returns it.
func (r *refused) count(err error) error {
	if errors.Is(err, ErrWrongAnswer) || errors.Is(err, ErrUnreadable) {
		r.Add(1)
	}

	return err
}

// Refused returns how many answers were not of what was asked for, and how many
// messages had headers that only the server sets or that cannot be read.
func (s *Store) Refused() uint64 { return s.refused.Load() }
