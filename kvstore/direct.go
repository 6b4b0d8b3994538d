package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// RequestTimeout is how long one answer of the server may take: a request lost in
// an outage has none.
const RequestTimeout = 5 * time.Second

// Value is Last for a value that is used: that of a deleted key is
// model.ErrNotFound, too, and the error wraps ErrServerHeaders for one that claims
// to come from elsewhere.
func (s *Store) Value(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.Last(ctx, stream, subject)
	switch {
	case err != nil:
		return m, err
	case m.Forged:
		err = ErrServerHeaders
	case m.Deleted():
		m, err = Message{}, model.ErrNotFound
	default:
		return m, nil
	}

	return m, fmt.Errorf("read %s of %s: %w", subject, stream, err)
}

// Last reads the newest message of a subject, or of all subjects that match a
// wildcard. The error wraps model.ErrNotFound when there is none, and
// ErrWrongAnswer. A replica that lags may answer with an older one.
func (s *Store) Last(ctx context.Context, stream, subject string) (Message, error) {
	err := s.bind(ctx, stream)
	var m Message
	if err == nil {
		var reply *nats.Msg
		if reply, err = s.directGet(ctx, s.api().DirectGet(stream, subject)); err == nil {
			m, err = s.counted(decodeAnswer(asked{stream: stream, subject: subject}, reply))
		}
	}
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// directGet returns the answer to a direct get of one message. The client takes a
// message that was stored empty, with the status 503 as a header, for the server's
// word that nobody listens: then the answer is looked at itself.
func (s *Store) directGet(ctx context.Context, subject string) (*nats.Msg, error) {
	reply, err := s.Request(ctx, subject, nil)
	if !errors.Is(err, nats.ErrNoResponders) {
		return reply, err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	answers, stop, err := s.answers(subject, nil, 1)
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

// answers sends a request and returns the answers, of which there are most at most,
// as they arrive.
func (s *Store) answers(subject string, body []byte, most int) (answers chan *nats.Msg, stop func(), err error) {
	inbox := s.nc.NewInbox()
	answers = make(chan *nats.Msg, most)
	sub, err := s.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = sub.Unsubscribe() }
	if err := s.nc.PublishRequest(subject, inbox, body); err != nil {
		stop()
		return nil, nil, err
	}

	return answers, stop, nil
}

// Request asks the server once, for RequestTimeout at most.
func (s *Store) Request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ctx, done := s.Permitted(ctx, To(subject))
	reply, err := s.nc.RequestWithContext(ctx, subject, data)

	return reply, done(err)
}
