package kvstore

import (
	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

// Message is one stored message.
type Message = answer.Message

// NewEntry returns the assignment that a message stores under a key.
func NewEntry(key string, m Message) model.Entry {
	family, name, _ := model.SplitKey(key)

	return model.Entry{Key: key, Family: family, Name: name, Revision: m.Sequence, Value: m.Data, Time: m.Time, Deleted: m.Deleted()}
}
