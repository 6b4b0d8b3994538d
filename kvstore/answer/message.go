package answer

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Message is one stored message.
type Message struct {
	Subject  string
	Sequence uint64
	Time     time.Time
	Header   nats.Header
	Data     []byte
	// Forged reports whether it was stored with headers that only the server sets, or
	// that cannot be read: its value is not used. All else here is the server's own
	// word.
	Forged bool
	// Unreadable reports whether it is Forged because its headers cannot be read.
	Unreadable bool
}

// Refusal returns why the value is not used: ErrUnreadable or ErrServerHeaders, nil for
// one that is not Forged.
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

// OperationHeader is the header of what a message does to its key.
const OperationHeader = "KV-Operation"

// Deleted reports whether the message marks the end of its key, stored by a
// client or by the server.
func (m *Message) Deleted() bool {
	op := m.Header.Get(OperationHeader)

	return op == "DEL" || op == "PURGE" || m.Header.Get("Nats-Marker-Reason") != ""
}
