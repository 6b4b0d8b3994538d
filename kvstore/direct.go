package kvstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// requestTimeout is how long one answer of the server may take. Without it a
// request lost in an outage would wait for ever.
const RequestTimeout = 5 * time.Second

// last reads the newest message of a subject, which may end in a wildcard: then
// it is the newest of all that match. The error wraps model.ErrNotFound when there is
// none. A replica that lags may answer with an older one.
func (s *Store) Last(ctx context.Context, stream, subject string) (Message, error) {
	reply, err := s.Request(ctx, DirectGet(stream, subject), nil)
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}
	m, err := DirectMessage(reply)
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// request asks the server once, no longer than requestTimeout.
func (s *Store) Request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ctx, done := s.Permitted(ctx, To(subject))
	reply, err := s.nc.RequestWithContext(ctx, subject, data)

	return reply, done(err)
}

// directMessage decodes the answer to a direct get.
func DirectMessage(reply *nats.Msg) (Message, error) {
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
