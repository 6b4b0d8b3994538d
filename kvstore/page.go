package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

// Page is a part of a stream; Next is where the one after it begins, 0 when it was
// the last.
type Page struct {
	Messages []Message
	Next     uint64
}

// Page reads a number of messages at most by one direct get. Those before an error
// are returned with it. What is Forged is returned too: it must not hide the
// messages behind it.
func (s *Store) Page(ctx context.Context, a answer.Asked, batch int) (Page, error) {
	var out Page
	if err := s.Bind(ctx, a.Stream); err != nil {
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
			if pending, err := strconv.ParseUint(answer.Last(reply.Header, "Nats-Num-Pending"), 10, 64); len(out.Messages) > 0 && (err != nil || pending > 0) {
				out.Next = a.From
			}
			return out, nil
		case errors.Is(err, model.ErrNotFound):
			return out, nil
		case err != nil:
			return out, err
		}
		out.Messages = append(out.Messages, m)
		a.From = m.Sequence + 1
	}
}

// Since returns the sequence of the first message of a subject, which may be a
// wildcard, from a time on; that behind the newest when there is none.
func (s *Store) Since(ctx context.Context, stream, subject string, at time.Time) (uint64, error) {
	body, err := json.Marshal(map[string]any{"start_time": at, "next_by_subj": subject})
	if err != nil {
		return 0, err
	}
	reply, err := s.Request(ctx, s.api().DirectGet(stream, ""), body)
	if err != nil {
		return 0, err
	}
	m, err := s.refused.decode(answer.Asked{Stream: stream, Subject: subject}, reply)
	if errors.Is(err, model.ErrNotFound) {
		// Nothing since then: go on behind the newest.
		if m, err = s.Last(ctx, stream, subject); errors.Is(err, model.ErrNotFound) {
			return 1, nil
		}
		return m.Sequence + 1, err
	}

	return m.Sequence, err
}
