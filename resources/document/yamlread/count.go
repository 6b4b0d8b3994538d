package yamlread

import (
	"bytes"
	"errors"
	"math"
)

const (
	// minParseLimit is the number of values that may always be parsed at once. The parser needs about
	// 200 bytes for each value and each key. A document with at least bytesOfValue for each value
	// may have more.
	minParseLimit = 25_000
	bytesOfValue  = 40
)

// errTooDense is the error of a document with too many values to parse at once.
var errTooDense = errors.New("too many values in one")

// parseLimit returns the number of values of a document that may be parsed at once.
func parseLimit(data []byte) int { return max(minParseLimit, len(data)/bytesOfValue) }

// countMarks estimates the number of values in a YAML text. It counts separators outside of quotes,
// comments and literal or folded blocks.
func countMarks(data []byte) int {
	m := marker{limit: math.MaxInt}
	m.read(data)

	return m.total
}

// endOfMarks returns the offset after a number of values.
func endOfMarks(data []byte, limit int) int { return (&marker{limit: limit}).read(data) }

// marker counts the separators of lines, up to a limit.
type marker struct {
	total, limit int
	blocks       blockScan
	// quote is the quote of the text that continues from the line before, or 0.
	quote byte
	// flow is the number of open brackets and braces.
	flow int
}

// read counts the separators of a text and returns the offset where it stopped.
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
