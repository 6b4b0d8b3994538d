// Package answer decodes what a NATS server answers to requests about a stream, and
// refuses what is not of what was asked. It asks nothing itself.
package answer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

var (
	// ErrWrong is an answer that is not of what was asked for: whoever has the
	// server send it chose where to. It is ignored.
	ErrWrong = errors.New("answer refused")
	// ErrServerHeaders is a message that was stored with headers by which the server
	// tells what it is and where it is from. Its value is not used.
	ErrServerHeaders error = unusable("stored with headers that only the server sets (Nats-Stream, Nats-Subject, Nats-Sequence, Nats-Time-Stamp, Status): put it again without them")

	// ErrEndOfBatch ends a batch of messages; it is no failure.
	ErrEndOfBatch = errors.New("end of the batch")
)

// unusable is an error with its own text that wraps model.ErrUnusable.
type unusable string

func (u unusable) Error() string { return string(u) }

func (u unusable) Unwrap() error { return model.ErrUnusable }

// Asked is what an answer must be of: a stream, a subject or wildcard, and a first
// sequence.
type Asked struct {
	Stream, Subject string
	From            uint64
}

// Decode decodes one answer to a direct get. A message can be stored with any
// headers, of which the server removes none: but it adds its own at the end of each
// message, and none of them to a status. So only the last of each counts, and a
// message with its own is Forged. The error wraps ErrWrong, ErrUnreadable,
// model.ErrNotFound, ErrEndOfBatch or nats.ErrNoResponders.
func Decode(a Asked, reply *nats.Msg) (Message, error) {
	h := reply.Header
	if !IsWhole(reply) || Last(h, nats.JSStream) == "" && Last(h, nats.JSTimeStamp) != "" {
		return Message{}, fmt.Errorf("the message %w", ErrUnreadable)
	}
	stream, subject := Last(h, nats.JSStream), Last(h, nats.JSSubject)
	if stream == "" {
		return Message{}, statusOf(h)
	}
	switch {
	case stream != a.Stream:
		return Message{}, fmt.Errorf("%w: it is of stream %s", ErrWrong, stream)
	case !Matches(subject, a.Subject):
		return Message{}, fmt.Errorf("%w: it is of subject %s", ErrWrong, subject)
	}
	seq, err := strconv.ParseUint(Last(h, nats.JSSequence), 10, 64)
	if err != nil || seq == 0 || seq < a.From {
		return Message{}, fmt.Errorf("%w: its sequence is %q", ErrWrong, Last(h, nats.JSSequence))
	}
	at, err := time.Parse(time.RFC3339Nano, Last(h, nats.JSTimeStamp))
	if err != nil {
		return Message{}, fmt.Errorf("%w: its time is %q", ErrWrong, Last(h, nats.JSTimeStamp))
	}

	return Message{Subject: subject, Sequence: seq, Time: at, Header: h, Data: reply.Data, Forged: HasServerHeaders(h, 1)}, nil
}

// HasServerHeaders reports whether a message has a status, or more headers that tell
// where it is from than the server added.
func HasServerHeaders(h nats.Header, added int) bool {
	for _, name := range []string{nats.JSStream, nats.JSSubject, nats.JSSequence, nats.JSTimeStamp} {
		if len(h[name]) > added {
			return true
		}
	}

	return len(h["Status"]) > 0
}

// statusOf returns what an answer without a message means.
func statusOf(h nats.Header) error {
	switch status := Last(h, "Status"); status {
	case "204":
		return ErrEndOfBatch
	case "404":
		return model.ErrNotFound
	case "503":
		return nats.ErrNoResponders
	case "":
		return fmt.Errorf("%w: it is of no stream", ErrWrong)
	default:
		return fmt.Errorf("server answered %s %s", status, Last(h, "Description"))
	}
}

// Last returns the last value of a header, empty for none.
func Last(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}

	return values[len(values)-1]
}

// Sequence returns the sequence in the headers of a republished message, zero
// without one, or where they cannot be read: then those of the stored one cannot be
// either, and nothing better is worth waiting for. The server's own is the last.
func Sequence(m *nats.Msg) uint64 {
	seq, err := strconv.ParseUint(Last(m.Header, nats.JSSequence), 10, 64)
	if err != nil || !IsWhole(m) {
		return 0
	}

	return seq
}

// Matches reports whether a subject is a literal one that a pattern selects.
func Matches(subject, pattern string) bool {
	left, more := subject, true
	for token := range strings.SplitSeq(pattern, ".") {
		if token == ">" {
			return more
		}
		if !more {
			return false
		}
		var have string
		if have, left, more = strings.Cut(left, "."); have == "" || token != "*" && token != have {
			return false
		}
	}

	return !more
}
