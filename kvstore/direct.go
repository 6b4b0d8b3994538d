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
const requestTimeout = 5 * time.Second

// message is one stored message.
type message struct {
	subject  string
	sequence uint64
	time     time.Time
	header   nats.Header
	data     []byte
}

// deleted tells whether the message marks the end of its key, put there by a
// client or by the server.
func (m *message) deleted() bool {
	op := m.header.Get("KV-Operation")

	return op == "DEL" || op == "PURGE" || m.header.Get("Nats-Marker-Reason") != ""
}

// last reads the newest message of a subject, which may end in a wildcard: then
// it is the newest of all that match. The error wraps model.ErrNotFound when there is
// none. A replica that lags may answer with an older one.
func (s *Store) last(ctx context.Context, stream, subject string) (message, error) {
	reply, err := s.request(ctx, directGet(stream, subject), nil)
	if err != nil {
		return message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}
	m, err := directMessage(reply)
	if err != nil {
		return message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// request asks the server once, no longer than requestTimeout.
func (s *Store) request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ctx, done := s.permitted(ctx, to(subject))
	reply, err := s.nc.RequestWithContext(ctx, subject, data)

	return reply, done(err)
}

// directMessage decodes the answer to a direct get.
func directMessage(reply *nats.Msg) (message, error) {
	switch status := reply.Header.Get("Status"); status {
	case "":
	case "404":
		return message{}, model.ErrNotFound
	default:
		return message{}, fmt.Errorf("server answered %s %s", status, reply.Header.Get("Description"))
	}
	seq, err := strconv.ParseUint(reply.Header.Get(nats.JSSequence), 10, 64)
	if err != nil {
		return message{}, fmt.Errorf("answer without a sequence: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, reply.Header.Get(nats.JSTimeStamp))
	if err != nil {
		return message{}, fmt.Errorf("answer without a time: %w", err)
	}

	return message{subject: reply.Header.Get(nats.JSSubject), sequence: seq, time: at, header: reply.Header, data: reply.Data}, nil
}
