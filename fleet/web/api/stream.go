package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
)

const (
	// heartbeat is the maximum time without a message, because proxies close silent connections.
	heartbeat = 15 * time.Second
	// writeTimeout is the time after which a reader that does not read is dropped.
	writeTimeout = 5 * time.Second
	// maxPending is the maximum number of bytes of events that are sent together.
	maxPending = 32 << 10
	// retryAfter is the time in milliseconds after which readers reconnect.
	retryAfter = 2000
)

type streamInput struct {
	EventFilters
	After       string `query:"after" maxLength:"64" pattern:"^[0-9]{1,20}([.][0-9]{1,9})?$" doc:"The id of a message, or the seq of an event: begin after it. By default the feed begins at what comes"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"What a browser sends when it connects again; wins over after"`
}

// place is the position of a feed: the reader has n events of a seq, or all of them if n is negative. Several events of
// a batch have the same seq.
type place struct {
	seq uint64
	n   int
}

// parsePlace reads the id of a message. An invalid id is the start.
func parsePlace(id string) place {
	text, part, batch := strings.Cut(id, ".")
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return place{n: -1}
	}
	n, err := strconv.ParseUint(part, 10, 31)
	if !batch || err != nil {
		return place{seq, -1}
	}

	return place{seq, int(n)}
}

func (p place) next(seq uint64) place {
	if seq != p.seq {
		p = place{seq: seq}
	}
	p.n++

	return p
}

// has reports whether the reader has the event at a position of the same seq.
func (p place) has(of place) bool { return of.seq == p.seq && (p.n < 0 || of.n <= p.n) }

// String returns the id of a message at the position.
func (p place) String() string {
	if p.n < 0 {
		return strconv.FormatUint(p.seq, 10)
	}

	return fmt.Sprintf("%d.%d", p.seq, p.n)
}

// after returns the seq from which to follow, so that the rest of a batch comes again.
func (p place) after() uint64 {
	if p.n >= 0 && p.seq > 0 {
		return p.seq - 1
	}

	return p.seq
}

func (a *api) addStream(routes huma.API) {
	op := operation("stream", "/events/stream", "The feed of what nodes report, as server-sent events", http.StatusServiceUnavailable)
	op.Description = "Messages named event have an Event as data, and an id from which the feed continues, with the stored unread events. " +
		"Messages named progress have a Progress, at the beginning and every 15 seconds; gap means that events of a very large batch were left out. " +
		"A slow reader is disconnected, and continues at its position after it reconnects."
	op.Responses = map[string]*huma.Response{"200": {
		Description: "The feed, without an end",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(routes, op, func(ctx context.Context, in *streamInput) (*huma.StreamResponse, error) {
		leave, err := a.streams.Take(access.UserOf(ctx))
		if err != nil {
			return nil, busy(err.Error())
		}

		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer leave()
			r, w := humago.Unwrap(c)
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Accel-Buffering", "no")
			if r.Method != http.MethodHead {
				a.follow(r.Context(), in, &sender{to: w})
			}
		}}, nil
	})
}

// follow sends events until the reader leaves, or does not read for writeTimeout. If the model drops the feed because
// it is slow, follow continues from its position.
func (a *api) follow(ctx context.Context, in *streamInput, s *sender) {
	id := in.LastEventID
	if id == "" {
		id = in.After
	}
	s.at = parsePlace(id)
	fmt.Fprintf(&s.pending, "retry: %d\n", retryAfter)
	s.message("progress", "", a.Model.Progress())
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		s.again, s.come = s.at, place{}
		if !a.relay(ctx, in.EventFilters.query(), s, beat.C) {
			return
		}
		switch {
		case s.at != s.again:
		case s.at.n >= 0:
			// The seq has more events than the model sends at once; the rest is unavailable.
			s.at.n = -1
			s.message("gap", s.at.String(), struct{}{})
		default:
			return
		}
	}
}

// relay sends the events after a position until the model ends the feed, and reports whether the reader is still there.
func (a *api) relay(ctx context.Context, q view.EventQuery, s *sender, beat <-chan time.Time) bool {
	q.After = s.again.after()
	events, cancel := a.Model.Follow(q)
	defer cancel()
	for open := true; s.flush() == nil; {
		if !open {
			return true
		}
		select {
		case e, more := <-events:
			open = more && s.take(e, events)
		case <-beat:
			s.message("progress", "", a.Model.Progress())
		case <-ctx.Done():
			return false
		}
	}

	return false
}

type sender struct {
	to      http.ResponseWriter
	pending bytes.Buffer
	// at is the last position that was sent, come the last position that was received again.
	at, again, come place
}

// take adds an event and the further available events to the pending messages. It reports whether the feed continues.
func (s *sender) take(e view.Event, events <-chan view.Event) (open bool) {
	for {
		if s.come = s.come.next(e.Seq); !s.again.has(s.come) {
			s.at = s.come
			s.message("event", s.at.String(), e)
		}
		if s.pending.Len() >= maxPending {
			return true
		}
		select {
		case e, open = <-events:
			if !open {
				return false
			}
		default:
			return true
		}
	}
}

func (s *sender) message(name, id string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // cannot happen: all fields encode as JSON
	}
	if id != "" {
		fmt.Fprintf(&s.pending, "id: %s\n", id)
	}
	fmt.Fprintf(&s.pending, "event: %s\ndata: %s\n\n", name, text)
}

// flush sends the pending messages. It returns an error if the reader left or did not read for writeTimeout.
func (s *sender) flush() error {
	if s.pending.Len() == 0 {
		return nil
	}
	defer s.pending.Reset()

	return SendNow(s.to, writeTimeout, s.pending.String())
}

// SendNow sends texts to the reader of a stream immediately. It returns an error if the reader left or did not read in
// time.
func SendNow(w http.ResponseWriter, patience time.Duration, texts ...string) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // a writer without deadlines, as in tests, does not wait
	for _, text := range texts {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	if err := control.Flush(); err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Time{}) // an expired deadline would end an idle HTTP/2 stream

	return nil
}
