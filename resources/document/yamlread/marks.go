package yamlread

import (
	"bytes"
	"errors"
	"math"
)

const (
	// leastWhole is how many values may always be read at once. The parser needs some
	// 200 bytes for each, and as much for each key: more may be read at once of a
	// document that has bytesOfValue for each.
	leastWhole   = 25_000
	bytesOfValue = 40
)

// errTooDense means that too many values would have to be read at once.
var errTooDense = errors.New("too many values in one")

// wholeLimit is how many values of a document may be read at once.
func wholeLimit(data []byte) int { return max(leastWhole, len(data)/bytesOfValue) }

// countMarks returns about how many values a text in YAML has. It counts what
// separates values, but not within quotes, comments and literal and folded blocks.
func countMarks(data []byte) int {
	m := marker{limit: math.MaxInt}
	m.read(data)

	return m.total
}

// endOfMarks returns where so many values end.
func endOfMarks(data []byte, limit int) int { return (&marker{limit: limit}).read(data) }

// marker counts the marks of lines, up to a limit.
type marker struct {
	total, limit int
	blocks       blockScan
	// quote is the sign that ends the text that the line before is in, if any.
	quote byte
	// flow is how many brackets and braces are open.
	flow int
}

// read counts the marks of a text, and returns where it stopped.
func (m *marker) read(data []byte) (at int) {
	for line := range bytes.Lines(data) {
		if inside, _ := m.blocks.next(line); !inside {
			if end := m.line(line); m.total >= m.limit {
				return at + end
			}
		}
		at += len(line)
	}

	return at
}

func (m *marker) line(line []byte) (at int) {
	begins := true
	for i := 0; i < len(line) && m.total < m.limit; i++ {
		c := line[i]
		at = i + 1
		switch {
		case m.quote != 0:
			if c == '\\' && m.quote == '"' {
				i++
			} else if c == m.quote {
				m.quote = 0
			}
		case c == '#' && (i == 0 || isBlank(line[i-1:])):
			return len(line)
		case begins && (c == '"' || c == '\''):
			m.quote, begins = c, false
		case begins && (c == '[' || c == '{'):
			m.total++
			m.flow++
		case m.flow > 0 && (c == ']' || c == '}'):
			m.flow--
		case m.flow > 0 && c == ',', c == ':' && (m.flow > 0 || isBlank(line[i+1:])), begins && (c == '-' || c == '?') && isBlank(line[i+1:]):
			m.total++
			begins = true
		default:
			begins = begins && isBlank(line[i:])
		}
	}

	return at
}
