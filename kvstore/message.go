package kvstore

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Message is one stored message.
type Message struct {
	Subject  string
	Sequence uint64
	Time     time.Time
	Header   nats.Header
	Data     []byte
	// Forged reports whether the message was stored with headers that only the server
	// sets, or with unreadable headers. Callers must not use Data then. The server vouches
	// for the sequence, the subject and the time.
	Forged bool
	// Unreadable reports whether the message is Forged because its headers are unreadable.
	Unreadable bool
}

// Refusal returns the reason to reject a Forged message: ErrUnreadable or ErrServerHeaders.
// It returns nil for any other message.
func (m *Message) Refusal() error {
	switch {
	case m.Unreadable:
		return ErrUnreadable
	case m.Forged:
		return ErrServerHeaders
	default:
		return nil
	}
}

const operationHeader = "KV-Operation"

// Deleted reports whether the message is a deletion marker, stored by a client or by
// the server.
func (m *Message) Deleted() bool {
	op := m.Header.Get(operationHeader)

	return op == "DEL" || op == "PURGE" || m.Header.Get("Nats-Marker-Reason") != ""
}

// NewEntry returns the assignment in a message for a key.
func NewEntry(key string, m Message) model.Entry {
	family, name, _ := model.SplitKey(key)

	return model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Value: m.Data, Time: m.Time, Deleted: m.Deleted()}
}

func newEntryBy(key string, m Message) model.Entry {
	e := NewEntry(key, m)
	e.By = AuthorOf(m)

	return e
}

func messageSize(m Message) int {
	size := len(m.Data)
	for name, values := range m.Header {
		size += len(name)
		for _, v := range values {
			size += len(v)
		}
	}

	return size
}

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

// ErrUnreadable reports that the client cannot read all headers of a stored message. Callers must not
// use its value.
var ErrUnreadable error = unusableError("has headers that cannot be read: put it again without them, or remove it")

const (
	// maxHeaders limits the headers of a message. A header can be up to two bytes shorter than
	// hasAllHeaders assumes. The limit keeps the sum of these bytes below the size of the headers that
	// the server appends.
	maxHeaders = 24
	emptyBlock = "NATS/1.0\r\n\r\n"
)

// hasAllHeaders reports whether the client read all headers of a message. The client drops a block
// that contains an invalid line, and stops at the first empty line. So an author could write forged
// server headers before an empty line and hide the real ones behind it. Hidden headers make the block
// longer than the headers that the client read.
func hasAllHeaders(m *nats.Msg) bool {
	size := m.Size() - len(m.Subject) - len(m.Reply) - len(m.Data)
	lines, most := 0, len(emptyBlock)
	for name, values := range m.Header {
		for _, value := range values {
			lines++
			most += len(name) + len(value) + len(": \r\n")
		}
	}

	return lines <= maxHeaders && size <= most
}

const authorHeader = "Muster-By"

// maxAuthor limits an author name, in bytes. AuthorOf and SenderOf ignore longer names.
const maxAuthor = 200

// SetAuthor records the author in the headers of m. An empty name sets no header. The name is
// self-declared and is not verified.
func SetAuthor(m *nats.Msg, name string) {
	if name != "" {
		m.Header.Set(authorHeader, url.PathEscape(name))
	}
}

// AuthorOf returns the self-declared author of m, or "" if m has no readable author.
func AuthorOf(m Message) string {
	if m.Unreadable {
		return ""
	}

	return unescaped(m.Header, authorHeader, maxAuthor)
}

const nodesHeader = "Muster-Nodes"

// maxAsked is the highest node count that SenderOf accepts. No fleet is larger.
const maxAsked = 1_000_000

// toHeader holds the targets of a request and onHeader its target expression, URL path-escaped.
const (
	toHeader = "Muster-To"
	onHeader = "Muster-On"
)

// SetSender records the sender and the targets of a request in the headers of m. It omits a target or
// an expression longer than model.MaxTarget. The headers are self-declared and are not verified.
func SetSender(m *nats.Msg, s model.Sender) {
	SetAuthor(m, s.By)
	if s.Nodes > 0 {
		m.Header.Set(nodesHeader, strconv.Itoa(s.Nodes))
	}
	for header, text := range map[string]string{toHeader: s.To, onHeader: s.On} {
		if text != "" && len(text) <= model.MaxTarget {
			m.Header.Set(header, url.PathEscape(text))
		}
	}
}

// SenderOf returns the self-declared sender of a request, or nil if the headers name none. It ignores
// values that are too long or span several lines.
func SenderOf(h nats.Header) *model.Sender {
	out := model.Sender{By: lineOf(h, authorHeader, maxAuthor), To: lineOf(h, toHeader, model.MaxTarget), On: lineOf(h, onHeader, model.MaxTarget)}
	if nodes, err := strconv.Atoi(h.Get(nodesHeader)); err == nil && nodes > 0 && nodes <= maxAsked {
		out.Nodes = nodes
	}
	if out == (model.Sender{}) {
		return nil
	}

	return &out
}

// lineOf returns the unescaped text of a header, or "" if it is longer than most bytes or not a single line.
func lineOf(h nats.Header, name string, most int) string {
	if text := unescaped(h, name, most); model.IsLine(text) {
		return text
	}

	return ""
}

// unescaped returns the text of a URL path-escaped header, or "" if it is malformed or longer than most bytes.
func unescaped(h nats.Header, name string, most int) string {
	text, err := url.PathUnescape(h.Get(name))
	if err != nil || len(text) > most {
		return ""
	}

	return text
}
