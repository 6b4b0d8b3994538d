package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

// DirectAll reads all messages of a stream on a subject, which may be a
// wildcard, by direct gets of a number of messages each, without a consumer. An
// error is the last thing it yields. What is Forged is yielded too: it must not hide
// the messages behind it.
func (s *Store) DirectAll(ctx context.Context, stream, subject string, batch int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for from := uint64(1); from > 0; {
			page, err := s.directPage(ctx, answer.Asked{Stream: stream, Subject: subject, From: from}, batch)
			for _, m := range page.messages {
				if !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err))
				return
			}
			from = page.next
		}
	}
}

// page is a part of a stream; next is 0 when it was the last.
type page struct {
	messages []Message
	next     uint64
}

func (s *Store) directPage(ctx context.Context, a answer.Asked, batch int) (page, error) {
	var out page
	if err := s.bind(ctx, a.Stream); err != nil {
		return out, err
	}
	body, err := json.Marshal(map[string]any{"seq": a.From, "batch": batch, "next_by_subj": a.Subject})
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	answers, stop, err := ask(s.nc, s.api().DirectGet(a.Stream, ""), body, batch+1)
	if err != nil {
		return out, err
	}
	defer stop()
	for {
		var reply *nats.Msg
		select {
		case reply = <-answers:
		case <-ctx.Done():
			return out, ctx.Err()
		}
		m, err := s.refused.decode(a, reply)
		switch {
		case errors.Is(err, answer.ErrEndOfBatch):
			if pending, err := strconv.ParseUint(answer.Last(reply.Header, "Nats-Num-Pending"), 10, 64); len(out.messages) > 0 && (err != nil || pending > 0) {
				out.next = a.From
			}
			return out, nil
		case errors.Is(err, model.ErrNotFound):
			return out, nil
		case err != nil:
			return out, err
		}
		out.messages = append(out.messages, m)
		a.From = m.Sequence + 1
	}
}
