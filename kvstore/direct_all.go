package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// DirectAll reads all messages of a stream on a subject, which may be a
// wildcard, by direct gets of a number of messages each, without a consumer. An
// error is the last thing it yields.
func (s *Store) DirectAll(ctx context.Context, stream, subject string, batch int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for from := uint64(1); from > 0; {
			page, err := s.directPage(ctx, stream, subject, from, batch)
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

func (s *Store) directPage(ctx context.Context, stream, subject string, from uint64, batch int) (page, error) {
	var out page
	if err := s.bind(ctx, stream); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"seq": from, "batch": batch, "next_by_subj": subject})
	if err != nil {
		return out, err
	}
	inbox := s.nc.NewInbox()
	replies, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return out, err
	}
	defer func() { _ = replies.Unsubscribe() }()
	if err := s.nc.PublishRequest(s.api().DirectGet(stream, ""), inbox, body); err != nil {
		return out, err
	}
	for {
		reply, err := replies.NextMsgWithContext(ctx)
		if err != nil {
			return out, err
		}
		const endOfBatch = "204"
		switch reply.Header.Get("Status") {
		case endOfBatch:
			if n := len(out.messages); n > 0 && reply.Header.Get("Nats-Num-Pending") != "0" {
				out.next = out.messages[n-1].Sequence + 1
			}
			return out, nil
		case "503":
			return out, nats.ErrNoResponders
		}
		m, err := directMessage(reply)
		switch {
		case errors.Is(err, model.ErrNotFound):
			return out, nil
		case err != nil:
			return out, err
		}
		out.messages = append(out.messages, m)
	}
}
