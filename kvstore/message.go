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
	// Forged reports whether it was stored with headers that only the server sets: its
	// value is not used. All else here is the server's own word.
	Forged bool
}

// operationHeader is what a message does to its key.
const operationHeader = "KV-Operation"

// Deleted reports whether the message marks the end of its key, stored by a
// client or by the server.
func (m *Message) Deleted() bool {
	op := m.Header.Get(operationHeader)

	return op == "DEL" || op == "PURGE" || m.Header.Get("Nats-Marker-Reason") != ""
}

// NewEntry returns the assignment that a message stores under a key.
func NewEntry(key string, m Message) model.Entry {
	family, name, _ := model.SplitKey(key)

	return model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Value: m.Data, Time: m.Time, Deleted: m.Deleted()}
}
