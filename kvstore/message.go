package kvstore

import (
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

// operationHeader names the header with the operation of a message on its key.
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

// messageSize returns the size of the headers and the data of a message in bytes.
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
