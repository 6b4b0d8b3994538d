package kvstore

import (
	"github.com/nats-io/nats.go"
)

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
