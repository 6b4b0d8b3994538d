package answer

import (
	"github.com/nats-io/nats.go"
)

// ErrUnreadable is a message that was stored with headers that the client cannot
// read, or not to their end. Its value is not used.
var ErrUnreadable error = unusable("has headers that cannot be read: put it again without them, or remove it")

const (
	// maxHeaders is how many headers a message may have. Each may be written up to two
	// bytes shorter than it is counted: the bound keeps that below what the server adds.
	maxHeaders = 24
	emptyBlock = "NATS/1.0\r\n\r\n"
)

// IsWhole reports whether the client read all headers of a message. It keeps none of a
// block with a line that is no header, and stops at the first empty line: an author
// could hide behind one what the server adds at the end, and write the server's word
// before it. What is hidden makes the block longer than the headers that were read.
func IsWhole(m *nats.Msg) bool {
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
