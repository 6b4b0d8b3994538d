package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Page is a part of a stream. Next is the first sequence of the next page. More reports whether there
// may be further messages.
type Page struct {
	Messages []Message
	Next     uint64
	More     bool
}

// pageBytes limits the size of a page. The server closes a connection with more unsent data than
// max_pending, which may be 32 MB (provision.ServerLimits).
const pageBytes = 4 << 20

// Page reads at most batch messages with one direct get. It returns the messages before an error
// together with the error. It also returns Forged messages, because they must not hide the messages
// behind them. It skips and counts messages with unreadable headers.
func (s *Store) Page(ctx context.Context, a Query, batch int) (Page, error) {
	return s.page(ctx, a, batch, map[string]any{"seq": a.From, "batch": batch, "max_bytes": pageBytes, "next_by_subj": a.Subject})
}

// page sends a request for at most batch messages.
func (s *Store) page(ctx context.Context, a Query, batch int, request map[string]any) (Page, error) {
	out := Page{Next: a.From}
	if err := s.Bind(ctx, a.Stream); err != nil {
		return out, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	subject := s.places.InUse().DirectGet(a.Stream, "")
	ctx, done := s.denials.Permitted(ctx, To(subject))
	out, err = repeat(ctx, s, s.readWaits(), func(ctx context.Context, heard func()) (Page, error) {
		return s.pageOnce(ctx, a, batch, subject, body, heard)
	})
	if err != nil && out.Next == 0 {
		out.Next = a.From
	}

	return out, done(err)
}

// pageOnce sends one request and reads its answers. If the answers stop for repeatAfter, the page ends
// with More set.
func (s *Store) pageOnce(ctx context.Context, a Query, batch int, subject string, body []byte, heard func()) (Page, error) {
	first := a.From
	out := Page{Next: first}
	answers, stop, err := ask(s.nc, subject, body, batch+1)
	if err != nil {
		return out, err
	}
	defer stop()
	idle := time.NewTimer(repeatAfter)
	defer idle.Stop()
	for received := 0; ; received++ {
		var reply *nats.Msg
		select {
		case reply = <-answers:
			heard()
			idle.Reset(repeatAfter)
		case <-idle.C:
			if out.More = len(out.Messages) > 0; out.More {
				return out, nil
			}
			received--
			continue
		case <-ctx.Done():
			return out, ctx.Err()
		}
		m, err := s.refused.decode(a, reply)
		switch {
		case errors.Is(err, errEndOfBatch):
			// The last sequence may belong to a skipped message.
			if last := number(reply, nats.JSLastSequence, 0); last >= out.Next {
				out.Next = last + 1
			}
			out.More = out.Next > first && number(reply, "Nats-Num-Pending", 1) > 0
			return out, nil
		case errors.Is(err, model.ErrNotFound):
			return out, nil
		case received == batch:
			return out, fmt.Errorf("%w: more messages than the %d requested", ErrWrongAnswer, batch)
		case errors.Is(err, ErrUnreadable):
			continue
		case err != nil:
			return out, err
		}
		out.Messages = append(out.Messages, m)
		a.From = m.Sequence + 1
		out.Next = a.From
	}
}

// number returns the number in a header of an answer, or otherwise if there is none.
func number(reply *nats.Msg, header string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(lastHeader(reply.Header, header), 10, 64); err == nil {
		return n
	}

	return otherwise
}

// StoredAt returns the time of the message with a sequence. Its subject must match subject, which may
// be a wildcard. The error wraps model.ErrNotFound if the stream lacks the message.
func (s *Store) StoredAt(ctx context.Context, stream, subject string, sequence uint64) (time.Time, error) {
	p, err := s.Page(ctx, Query{Stream: stream, Subject: subject, From: sequence}, 1)
	switch {
	case err != nil:
		return time.Time{}, err
	case len(p.Messages) == 0 || p.Messages[0].Sequence != sequence:
		return time.Time{}, fmt.Errorf("message %d of %s: %w", sequence, stream, model.ErrNotFound)
	default:
		return p.Messages[0].Time, nil
	}
}

// Since returns the sequence of the first message of a subject, which may be a wildcard, from a time
// on. If there is none, it returns the sequence after the newest message.
func (s *Store) Since(ctx context.Context, stream, subject string, at time.Time) (uint64, error) {
	a := Query{Stream: stream, Subject: subject}
	p, err := s.page(ctx, a, 1, map[string]any{"start_time": at, "batch": 1, "next_by_subj": subject})
	if err != nil || p.Next > 0 {
		return p.Next - min(p.Next, 1), err
	}
	// Nothing was stored since then, so continue after the newest message.
	m, err := s.Last(ctx, stream, subject)
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, ErrUnreadable):
		return 1, nil
	default:
		return m.Sequence + 1, err
	}
}
