package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// RequestTimeout limits the wait for an answer of the server. A request that is lost in an outage has
// no answer.
const RequestTimeout = 5 * time.Second

// Value reads the newest message of a subject like Last, for use as a value. The error wraps
// model.ErrNotFound for a deleted key, and ErrServerHeaders for forged server headers.
func (s *Store) Value(ctx context.Context, stream, subject string) (Message, error) {
	m, err := s.Last(ctx, stream, subject)

	return used(stream, m, err)
}

// used returns the message of Last with an error if it is deleted or forged.
func used(stream string, m Message, err error) (Message, error) {
	switch {
	case err != nil:
		return m, err
	case m.Forged:
		err = m.Refusal()
	case m.Deleted():
		err = model.ErrNotFound
	default:
		return m, nil
	}

	return m, fmt.Errorf("read %s of %s: %w", m.Subject, stream, err)
}

// ErrLags reports that the answering server lacks messages that the leader of the stream has.
var ErrLags = errors.New("the NATS server that answers lags behind the others, try again")

// CurrentMessage reads the newest message of a subject as the leader of the stream has it, and waits
// for a lagging replica. The user needs permission to publish to the subject. The error wraps ErrLags
// if the replica still lags after a second.
func (s *Store) CurrentMessage(ctx context.Context, stream, subject string) (m Message, err error) {
	newest, err := s.Newest(ctx, subject)
	if err != nil {
		return Message{}, err
	}
	err = UntilCurrent(ctx, func(last bool) (bool, error) {
		m, err = s.Last(ctx, stream, subject)
		switch isNone := errors.Is(err, model.ErrNotFound); {
		case err != nil && !isNone:
			return false, err
		case m.Sequence >= newest: // of none, 0
			return true, err
		case last:
			return false, fmt.Errorf("read %s of %s, sequence %d: %w", subject, stream, newest, ErrLags)
		default:
			return false, nil
		}
	})

	return m, err
}

// Last reads the newest message of a subject or wildcard. The error wraps model.ErrNotFound,
// ErrWrongAnswer or ErrUnreadable. A lagging replica may return an older message.
func (s *Store) Last(ctx context.Context, stream, subject string) (Message, error) {
	err := s.Bind(ctx, stream)
	var m Message
	if err == nil {
		var reply *nats.Msg
		reply, err = s.Request(ctx, s.API.InUse().DirectGet(stream, subject), nil)
		if errors.Is(err, nats.ErrNoResponders) {
			reply, err = askOnce(ctx, s.Conn, s.API.InUse().DirectGet(stream, subject))
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && s.lacksDirect(ctx, stream, subject) {
			err = nats.ErrNoResponders
		}
		if err == nil {
			m, err = s.refused.decode(Query{Stream: stream, Subject: subject}, reply)
		}
	}
	if err != nil {
		return Message{}, fmt.Errorf("read %s of %s: %w", subject, stream, err)
	}

	return m, nil
}

// Find reads the newest message of a subject or wildcard like Last, which may be a removal. It returns found=false if no
// message exists. It returns a message with unreadable headers as Forged and Unreadable, without data.
func (s *Store) Find(ctx context.Context, stream, subject string) (m Message, found bool, err error) {
	m, err = s.Last(ctx, stream, subject)
	switch {
	case errors.Is(err, model.ErrNotFound):
		return m, false, nil
	case errors.Is(err, ErrUnreadable):
		return Message{Subject: subject, Forged: true, Unreadable: true}, true, nil
	default:
		return m, err == nil, err
	}
}

// lacksDirect reports whether a stream is missing or has no direct get. Last asks only after a timeout: while a client
// subscribes to all subjects, the server does not report "no responders" for a missing stream.
func (s *Store) lacksDirect(ctx context.Context, stream, subject string) bool {
	found, err := s.Infos(ctx, subject)
	info := found[stream]

	return err == nil && !found.hasUnanswered() && (info == nil || !info.Config.AllowDirect)
}

// askOnce returns the answer to a request. Unlike the client's own request, it also returns an empty
// message that was stored with a status 503 header. The client would report that as "no responders".
func askOnce(ctx context.Context, nc *nats.Conn, subject string) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	answers, stop, err := ask(nc, subject, nil, 1)
	if err != nil {
		return nil, err
	}
	defer stop()
	select {
	case reply := <-answers:
		return reply, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask sends a request and returns a channel with at most most answers.
func ask(nc *nats.Conn, subject string, body []byte, most int) (answers chan *nats.Msg, stop func(), err error) {
	inbox := nc.NewInbox()
	answers = make(chan *nats.Msg, most)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = sub.Unsubscribe() }
	if err := nc.PublishRequest(subject, inbox, body); err != nil {
		stop()
		return nil, nil, err
	}

	return answers, stop, nil
}

// Request sends a read-only request and waits for the answer, for at most RequestTimeout. It sends the request again while
// there is no answer.
func (c *Connection) Request(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	ctx, done := c.Denials.Permitted(ctx, To(subject))
	reply, err := repeat(ctx, c, c.readWaits(), func(ctx context.Context, _ func()) (*nats.Msg, error) {
		return c.Conn.RequestWithContext(ctx, subject, data)
	})
	if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
		err = c.unanswered(err)
	}
	if mistaken := c.API.Mistaken(subject); mistaken != nil && errors.Is(err, nats.ErrNoResponders) {
		err = mistaken
	}

	return reply, done(err)
}

type refused struct{ atomic.Uint64 }

func (r *refused) decode(a Query, reply *nats.Msg) (Message, error) {
	m, err := decodeAnswer(a, reply)
	if m.Forged {
		r.Add(1)
	}

	return m, r.count(err)
}

// count counts err if it is a refused answer, and returns it.
func (r *refused) count(err error) error {
	if errors.Is(err, ErrWrongAnswer) || errors.Is(err, ErrUnreadable) {
		r.Add(1)
	}

	return err
}

// Refused returns the number of answers that did not match their request, plus the messages with
// forged or unreadable headers.
func (s *Store) Refused() uint64 { return s.refused.Load() }

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
	subject := s.API.InUse().DirectGet(a.Stream, "")
	ctx, done := s.Denials.Permitted(ctx, To(subject))
	out, err = repeat(ctx, s.Connection, s.readWaits(), func(ctx context.Context, heard func()) (Page, error) {
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
	answers, stop, err := ask(s.Conn, subject, body, batch+1)
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

// Since returns the sequence of the first message of a subject, which may be a wildcard, from a time
// on. If there is none, it returns the sequence after the newest message.
func (s *Store) Since(ctx context.Context, stream, subject string, at time.Time) (uint64, error) {
	a := Query{Stream: stream, Subject: subject}
	p, err := s.page(ctx, a, 1, map[string]any{"start_time": at, "batch": 1, "next_by_subj": subject})
	if err != nil || p.Next > 0 {
		return p.Next - min(p.Next, 1), err
	}
	// There is no later message, so continue after the newest one.
	m, err := s.Last(ctx, stream, subject)
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, ErrUnreadable):
		return 1, nil
	default:
		return m.Sequence + 1, err
	}
}
