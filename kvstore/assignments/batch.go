package assignments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/musterfleet/muster/kvstore"
)

// errConflict is a batch refused because another one was faster.
var errConflict = errors.New("changed by another operator meanwhile")

// commit stores messages together or not at all, and returns the sequence of the
// last; the others are right before it. The error wraps errConflict when an expected
// sequence is not the one found.
func (s Bucket) commit(ctx context.Context, msgs ...*nats.Msg) (uint64, error) {
	id := nuid.Next()
	for i, m := range msgs {
		m.Header.Set("Nats-Batch-Id", id)
		m.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
	}
	final := len(msgs) - 1
	msgs[final].Header.Set("Nats-Batch-Commit", "1")
	ctx, cancel := context.WithTimeout(ctx, kvstore.RequestTimeout)
	defer cancel()
	subjects := make([]string, len(msgs))
	for i, m := range msgs {
		subjects[i] = m.Subject
	}
	ctx, done := s.store.Permitted(ctx, kvstore.To(subjects...))
	reply, err := s.send(ctx, msgs[:final], msgs[final])
	if err = done(err); err != nil {
		return 0, err
	}

	return batchAck(reply.Data, len(msgs))
}

// send sends messages and waits for the answer to the last.
func (s Bucket) send(ctx context.Context, before []*nats.Msg, last *nats.Msg) (*nats.Msg, error) {
	for _, m := range before {
		if err := s.store.Conn().PublishMsg(m); err != nil {
			return nil, err
		}
	}

	return s.store.Conn().RequestMsgWithContext(ctx, last)
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

// isWrongSequence reports whether an error is one of the two about an expected
// sequence; the second one names no sequence.
func isWrongSequence(err *jetstream.APIError) bool {
	const constant = 10164

	return err.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || err.ErrorCode == constant
}
