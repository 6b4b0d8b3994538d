package kvstore

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// message is one stored message.
type Message struct {
	Subject  string
	Sequence uint64
	Time     time.Time
	Header   nats.Header
	Data     []byte
}

// deleted tells whether the message marks the end of its key, put there by a
// client or by the server.
func (m *Message) Deleted() bool {
	op := m.Header.Get("KV-Operation")

	return op == "DEL" || op == "PURGE" || m.Header.Get("Nats-Marker-Reason") != ""
}

func NewEntry(key string, m Message) model.Entry {
	family, name, _ := model.SplitKey(key)

	return model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Value: m.Data, Time: m.Time, Deleted: m.Deleted()}
}

// headerRoom is left for the headers of a message, which count as payload.
const headerRoom = 1024

// MaxMessage gives how many bytes a value can have, zero while no server was
// reached.
func (s *Store) MaxMessage() int64 { return max(s.nc.MaxPayload()-headerRoom, 0) }

// checkSize tells whether a value can be sent; the error wraps model.ErrTooLarge.
func (s *Store) CheckSize(what string, value []byte) error {
	if limit := s.nc.MaxPayload() - headerRoom; limit > 0 && int64(len(value)) > limit {
		return fmt.Errorf("%w: %s has %d bytes, the server takes %d", model.ErrTooLarge, what, len(value), limit)
	}

	return nil
}

// newMsg makes a message with its headers ready to be set.
func NewMsg(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
}
