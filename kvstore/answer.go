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
	// ErrWrongAnswer reports that an answer does not match the request. Another client can make the
	// server send one to any reply subject, so callers ignore it.
	ErrWrongAnswer = errors.New("answer refused")
	// ErrServerHeaders reports that a message was stored with headers that only the server sets.
	// Callers must not use its value.
	ErrServerHeaders error = unusableError("stored with headers that only the server sets (Nats-Stream, Nats-Subject, Nats-Sequence, Nats-Time-Stamp, Status): put it again without them")

	// errEndOfBatch marks the end of a batch of messages. It is not a failure.
	errEndOfBatch = errors.New("end of the batch")
)

// unusableError is a fixed error text that wraps model.ErrUnusable.
type unusableError string

func (u unusableError) Error() string { return string(u) }

func (u unusableError) Unwrap() error { return model.ErrUnusable }

// Query describes the messages that an answer must match: the stream, the subject or wildcard, and the
// lowest sequence.
type Query struct {
	Stream, Subject string
	From            uint64
}

// decodeAnswer decodes one answer to a direct get. An author can store a message with any headers, and
// the server removes none. The server appends its own headers to each message, but not to a status. So
// only the last value of each header counts, and a message that was stored with such headers is
// Forged. The error wraps ErrWrongAnswer, ErrUnreadable, model.ErrNotFound, errEndOfBatch or
// nats.ErrNoResponders.
func decodeAnswer(a Query, reply *nats.Msg) (Message, error) {
	h := reply.Header
	if !hasAllHeaders(reply) || lastHeader(h, nats.JSStream) == "" && lastHeader(h, nats.JSTimeStamp) != "" {
		return Message{}, fmt.Errorf("the message %w", ErrUnreadable)
	}
	stream, subject := lastHeader(h, nats.JSStream), lastHeader(h, nats.JSSubject)
	if stream == "" {
		return Message{}, statusError(h)
	}
	switch {
	case stream != a.Stream:
		return Message{}, fmt.Errorf("%w: it is of stream %s", ErrWrongAnswer, stream)
	case !SubjectMatches(subject, a.Subject):
		return Message{}, fmt.Errorf("%w: it is of subject %s", ErrWrongAnswer, subject)
	}
	seq, err := strconv.ParseUint(lastHeader(h, nats.JSSequence), 10, 64)
	if err != nil || seq == 0 || seq < a.From {
		return Message{}, fmt.Errorf("%w: its sequence is %q", ErrWrongAnswer, lastHeader(h, nats.JSSequence))
	}
	at, err := time.Parse(time.RFC3339Nano, lastHeader(h, nats.JSTimeStamp))
	if err != nil {
		return Message{}, fmt.Errorf("%w: its time is %q", ErrWrongAnswer, lastHeader(h, nats.JSTimeStamp))
	}

	return Message{Subject: subject, Sequence: seq, Time: at, Header: h, Data: reply.Data, Forged: hasServerHeaders(h, 1)}, nil
}

// hasServerHeaders reports whether a message has a status, or more than added values of a header that
// only the server sets.
func hasServerHeaders(h nats.Header, added int) bool {
	for _, name := range []string{nats.JSStream, nats.JSSubject, nats.JSSequence, nats.JSTimeStamp} {
		if len(h[name]) > added {
			return true
		}
	}

	return len(h["Status"]) > 0
}

// statusError returns the error for an answer without a message.
func statusError(h nats.Header) error {
	switch status := lastHeader(h, "Status"); status {
	case "204":
		return errEndOfBatch
	case "404":
		return model.ErrNotFound
	case "503":
		return nats.ErrNoResponders
	case "":
		return fmt.Errorf("%w: it is of no stream", ErrWrongAnswer)
	default:
		return fmt.Errorf("server answered %s %s", status, lastHeader(h, "Description"))
	}
}

// lastHeader returns the last value of a header, or "" if the header is not set.
func lastHeader(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}

	return values[len(values)-1]
}

// RepublishedSequence returns the sequence in the headers of a republished message. It returns zero if
// the headers have none or are unreadable. The headers of the stored message are then unreadable as
// well, so the caller need not wait for it.
func RepublishedSequence(m *nats.Msg) uint64 {
	seq, err := strconv.ParseUint(lastHeader(m.Header, nats.JSSequence), 10, 64)
	if err != nil || !hasAllHeaders(m) {
		return 0
	}

	return seq
}

// SubjectMatches reports whether pattern, which may contain wildcards, selects the literal subject.
func SubjectMatches(subject, pattern string) bool {
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
