package kvstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// RequestTimeout is how long one answer of the server may take: a request lost in
// an outage has none.
const RequestTimeout = 5 * time.Second

// Value is Last for a key: a deleted one is model.ErrNotFound, too.
func (s *Store) Value(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.Last(ctx, stream, subject)
	if err == nil && m.Deleted() {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, model.ErrNotFound)
	}

	return m, err
}

// Last reads the newest message of a subject, or of all subjects that match a
// wildcard. The error wraps model.ErrNotFound when there is none. A replica that
// lags may answer with an older one.
func (s *Store) Last(ctx context.Context, stream, subject string) (Message, error) {
	err := s.bind(ctx, stream)
	var m Message
	if err == nil {
		var reply *nats.Msg
		if reply, err = s.Request(ctx, s.api().DirectGet(stream, subject), nil); err == nil {
			m, err = directMessage(reply)
		}
	}
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// Request asks the server once, for RequestTimeout at most.
func (s *Store) Request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ctx, done := s.Permitted(ctx, To(subject))
	reply, err := s.nc.RequestWithContext(ctx, subject, data)

	return reply, done(err)
}

// directMessage decodes the answer to a direct get.
func directMessage(reply *nats.Msg) (Message, error) {
	switch status := reply.Header.Get("Status"); status {
	case "":
	case "404":
		return Message{}, model.ErrNotFound
	default:
		return Message{}, fmt.Errorf("server answered %s %s", status, reply.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(reply.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return Message{}, fmt.Errorf("answer without a sequence: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, reply.Header.Get(nats.JSTimeStamp))
	if err != nil {
		return Message{}, fmt.Errorf("answer without a time: %w", err)
	}

	return Message{Subject: reply.Header.Get(nats.JSSubject), Sequence: seq, Time: at, Header: reply.Header, Data: reply.Data}, nil
}
