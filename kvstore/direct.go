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

// RequestTimeout limits the wait for an answer of the server. A request that is lost in an outage has
// no answer.
const RequestTimeout = 5 * time.Second

// Value reads the newest message of a subject like Last, for use as a value. The error wraps
// model.ErrNotFound for a deleted key, and ErrServerHeaders for forged server headers.
func (s *Store) Value(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.Last(ctx, stream, subject)

	return used(stream, subject, m, err)
}

// used returns the message of Last, or an error if it is deleted or forged.
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

// ErrLags reports that the answering server lacks messages that the leader of the stream has.
var ErrLags = errors.New("the NATS server that answers lags behind the others, try again")

// CurrentValue reads a value like Value, but waits for a lagging replica like CurrentMessage.
func (s *Store) CurrentValue(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.CurrentMessage(ctx, stream, subject)

	return used(stream, subject, m, err)
}

// CurrentMessage reads the newest message of a subject as the leader of the stream has it, and waits
// for a lagging replica. The user needs permission to publish to the subject. The error wraps ErrLags
// if the replica still lags after a second.
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

// Last reads the newest message of a subject or wildcard. The error wraps model.ErrNotFound,
// ErrWrongAnswer or ErrUnreadable. A lagging replica may return an older message.
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

// askOnce returns the answer to a request. Unlike the client's own request, it also returns an empty
// message that was stored with a status 503 header. The client would report that as "no responders".
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

// ask sends a request and returns a channel with at most most answers.
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

// refused counts refused answers.
type refused struct{ atomic.Uint64 }

// decode decodes an answer to a direct get and counts refused ones.
func (r *refused) decode(a Query, reply *nats.Msg) (Message, error) {
	m, err := decodeAnswer(a, reply)
	if m.Forged {
		r.Add(1)
	}

	return m, r.count(err)
}

// count counts err if it is a refused answer, and returns it.
func (r *refused) count(err error) error {
	if errors.Is(err, ErrWrongAnswer) || errors.Is(err, ErrUnreadable) {
		r.Add(1)
	}

	return err
}

// Refused returns the number of answers that did not match their request, plus the messages with
// forged or unreadable headers.
func (s *Store) Refused() uint64 { return s.refused.Load() }
