package kvstore

import (
	"fmt"
	"iter"
)

// Bound is how much a scan may have, which a server could go on with for ever.
type ScanLimit struct{ Messages, Bytes int }

// Of yields the messages of a scan. Where there are more than the bound, or more bytes of headers and data in them,
// the last thing it yields is an error that wraps answer.ErrWrong.
func (b ScanLimit) Of(all iter.Seq2[Message, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		messages, size := 0, 0
		for m, err := range all {
			messages++
			size += messageSize(m)
			switch {
			case err != nil:
			case messages > b.Messages:
				m, err = Message{}, fmt.Errorf("%w: it goes on behind %d messages", ErrWrongAnswer, b.Messages)
			case size > b.Bytes:
				m, err = Message{}, fmt.Errorf("%w: it goes on behind %d bytes", ErrWrongAnswer, b.Bytes)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
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
