package kvstore

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
	// ErrWrongAnswer is an answer that is not of what was asked for: whoever has the
	// server send it chose where to. It is ignored.
	ErrWrongAnswer = errors.New("answer refused")
	// ErrServerHeaders is a message that was stored with headers by which the server
	// tells what it is and where it is from. Its value is not used.
	ErrServerHeaders = errors.New("stored with headers that only the server sets (Nats-Stream, Nats-Subject, Nats-Sequence, Nats-Time-Stamp, Status): put it again without them")

	errEndOfBatch = errors.New("end of the batch")
)

// asked is what an answer must be of: a stream, a subject or wildcard, and a first
// sequence.
type asked struct {
	stream, subject string
	from            uint64
}

// decodeAnswer decodes one answer to a direct get. A message can be stored with any
// headers, of which the server removes none: but it adds its own at the end of each
// message, and none of them to a status. So only the last of each counts, and a
// message with its own is Forged.
func decodeAnswer(a asked, reply *nats.Msg) (Message, error) {
	h := reply.Header
	stream, subject := last(h, nats.JSStream), last(h, nats.JSSubject)
	if stream == "" {
		return Message{}, statusOf(h)
	}
	switch {
	case stream != a.stream:
		return Message{}, fmt.Errorf("%w: it is of stream %s", ErrWrongAnswer, stream)
	case !matches(subject, a.subject):
		return Message{}, fmt.Errorf("%w: it is of subject %s", ErrWrongAnswer, subject)
	}
	seq, err := strconv.ParseUint(last(h, nats.JSSequence), 10, 64)
	if err != nil || seq == 0 || seq < a.from {
		return Message{}, fmt.Errorf("%w: its sequence is %q", ErrWrongAnswer, last(h, nats.JSSequence))
	}
	at, err := time.Parse(time.RFC3339Nano, last(h, nats.JSTimeStamp))
	if err != nil {
		return Message{}, fmt.Errorf("%w: its time is %q", ErrWrongAnswer, last(h, nats.JSTimeStamp))
	}

	return Message{Subject: subject, Sequence: seq, Time: at, Header: h, Data: reply.Data, Forged: hasServerHeaders(h, 1)}, nil
}

// hasServerHeaders reports whether a message has a status, or more headers that tell
// where it is from than the server added.
func hasServerHeaders(h nats.Header, added int) bool {
	for _, name := range []string{nats.JSStream, nats.JSSubject, nats.JSSequence, nats.JSTimeStamp} {
		if len(h[name]) > added {
			return true
		}
	}

	return len(h["Status"]) > 0
}

// statusOf returns what an answer without a message means.
func statusOf(h nats.Header) error {
	switch status := last(h, "Status"); status {
	case "204":
		return errEndOfBatch
	case "404":
		return model.ErrNotFound
	case "503":
		return nats.ErrNoResponders
	case "":
		return fmt.Errorf("%w: it is of no stream", ErrWrongAnswer)
	default:
		return fmt.Errorf("server answered %s %s", status, last(h, "Description"))
	}
}

// last returns the last value of a header, empty for none.
func last(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}

	return values[len(values)-1]
}

// Announced returns the sequence in the headers of a republished message, zero
// without one. The server's own is the last.
func Announced(h nats.Header) uint64 {
	seq, err := strconv.ParseUint(last(h, nats.JSSequence), 10, 64)
	if err != nil {
		return 0
	}

	return seq
}

// matches reports whether a subject is a literal one that a pattern selects.
func matches(subject, pattern string) bool {
	have, want := strings.Split(subject, "."), strings.Split(pattern, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return i < len(have)
		case i >= len(have) || have[i] == "" || token != "*" && token != have[i]:
			return false
		}
	}

	return len(have) == len(want)
}

// counted counts the answers and messages that are refused.
func (s *Store) counted(m Message, err error) (Message, error) {
	if m.Forged || errors.Is(err, ErrWrongAnswer) {
		s.refused.Add(1)
	}

	return m, err
}

// Refused returns how many answers were not of what was asked for, and how many
// messages had headers that only the server sets.
func (s *Store) Refused() uint64 { return s.refused.Load() }
