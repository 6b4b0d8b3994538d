package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/musterfleet/muster/model"
)

// errConflict is a batch refused because somebody else was faster.
var errConflict = errors.New("changed by somebody else meanwhile")

// headerRoom is left for the headers of a message, which count as payload.
const headerRoom = 1024

// commit stores messages together or not at all, and gives the sequence of the
// last; the others are right before it. The error wraps errConflict when an
// expected sequence is not the one found.
func (s *Store) commit(ctx context.Context, msgs ...*nats.Msg) (uint64, error) {
	id := nuid.Next()
	for i, m := range msgs {
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
	}
	final := len(msgs) - 1
	msgs[final].Header.Set("Nats-Batch-Commit", "1")
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	subjects := make([]string, len(msgs))
	for i, m := range msgs {
		subjects[i] = m.Subject
	}
	ctx, done := s.permitted(ctx, to(subjects...))
	reply, err := s.send(ctx, msgs[:final], msgs[final])
	if err = done(err); err != nil {
		return 0, err
	}

	return batchAck(reply.Data, len(msgs))
}

// send sends messages, and waits for the answer to the last.
func (s *Store) send(ctx context.Context, before []*nats.Msg, last *nats.Msg) (*nats.Msg, error) {
	for _, m := range before {
		if err := s.nc.PublishMsg(m); err != nil {
			return nil, err
		}
	}

	return s.nc.RequestMsgWithContext(ctx, last)
}

// batchAck decodes the server's answer to the end of a batch.
func batchAck(data []byte, want int) (uint64, error) {
	var ack struct {
		Sequence uint64              `json:"seq"`
		Count    int                 `json:"count"`
		Error    *jetstream.APIError `json:"error"`
	}
	err := json.Unmarshal(data, &ack)
	switch {
	case err != nil:
		return 0, fmt.Errorf("decode acknowledgement: %w", err)
	case ack.Error != nil && isWrongSequence(ack.Error):
		return 0, fmt.Errorf("%w: %w", errConflict, ack.Error)
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Count != want || ack.Sequence < uint64(want):
		return 0, fmt.Errorf("the server stored %d of %d messages as one batch", ack.Count, want)
	}

	return ack.Sequence, nil
}

// isWrongSequence tells the two errors of an expected sequence apart from all
// others; the second one names no sequence.
func isWrongSequence(err *jetstream.APIError) bool {
	const constant = 10164

	return err.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || err.ErrorCode == constant
}

// MaxMessage gives how many bytes a value can have, zero while no server was
// reached.
func (s *Store) MaxMessage() int64 { return max(s.nc.MaxPayload()-headerRoom, 0) }

// checkSize tells whether a value can be sent; the error wraps model.ErrTooLarge.
func (s *Store) checkSize(what string, value []byte) error {
	if limit := s.nc.MaxPayload() - headerRoom; limit > 0 && int64(len(value)) > limit {
		return fmt.Errorf("%w: %s has %d bytes, the server takes %d", model.ErrTooLarge, what, len(value), limit)
	}

	return nil
}

// newMsg makes a message with its headers ready to be set.
func newMsg(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
}
