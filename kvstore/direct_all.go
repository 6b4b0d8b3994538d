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

// directPage is how many messages are asked for at a time.
const directPage = 500

// directAll reads all messages of a stream on a subject, which may be a
// wildcard, by direct gets: no consumer is made, so that a node may do it. An
// error is the last thing it gives.
func (s *Store) DirectAll(ctx context.Context, stream, subject string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		from := uint64(1)
		for from > 0 {
			page, err := s.directPage(ctx, stream, subject, from)
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

func (s *Store) directPage(ctx context.Context, stream, subject string, from uint64) (page, error) {
	var out page
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"seq": from, "batch": directPage, "next_by_subj": subject})
	if err != nil {
		return out, err
	}
	inbox := s.nc.NewInbox()
	replies, err := s.nc.SubscribeSync(inbox)
	if err != nil {
		return out, err
	}
	defer func() { _ = replies.Unsubscribe() }()
	if err := s.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, body); err != nil {
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
		m, err := DirectMessage(reply)
		switch {
		case errors.Is(err, model.ErrNotFound):
			return out, nil
		case err != nil:
			return out, err
		}
		out.messages = append(out.messages, m)
	}
}
