package yamlread

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Source is the text of a document, with positions for its offsets.
type Source struct {
	Name string
	Text string
	// lines is the text with line breaks of one form: "\n".
	lines string
	// marks are the positions of every markEvery-th byte.
	marks []mark
}

type mark struct{ line, column uint32 }

const markEvery = 128

// NewSource returns a source. In YAML, \r alone is a line break too.
func NewSource(name, text string, isYAML bool) *Source {
	s := &Source{Name: name, Text: text, lines: text}
	if isYAML && strings.Count(text, "\r") != strings.Count(text, "\r\n") {
		unix := []byte(text)
		for i, c := range unix {
			if c == '\r' && (i+1 == len(unix) || unix[i+1] != '\n') {
				unix[i] = '\n'
			}
		}
		s.lines = string(unix)
	}
	s.marks = make([]mark, 0, len(text)/markEvery+1)
	m := mark{1, 1}
	for at := 0; at <= len(text); at += markEvery {
		s.marks = append(s.marks, m)
		m = m.behind(s.lines[at:min(at+markEvery, len(text))])
	}

	return s
}

// behind returns the position after a text that begins at m.
func (m mark) behind(text string) mark {
	if lines := strings.Count(text, "\n"); lines > 0 {
		m.line += uint32(lines)
		m.column = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	for i := range len(text) {
		// Skip the continuation bytes of a character.
		if text[i]&0xc0 != 0x80 {
			m.column++
		}
	}

	return m
}

// lineColumn returns the line and column of an offset.
func (s *Source) lineColumn(at uint32) mark {
	return s.marks[at/markEvery].behind(s.lines[at/markEvery*markEvery : at])
}

// Position returns the position of an offset.
func (s *Source) Position(at uint32) model.Position {
	m := s.lineColumn(at)

	return model.Position{File: s.Name, Line: int(m.line), Column: int(m.column)}
}

// Cursor converts positions to offsets, in ascending order.
type Cursor struct {
	*Source
	at   int
	mark mark
}

// NewCursor returns a cursor at the start.
func NewCursor(s *Source) Cursor { return Cursor{Source: s} }

// Seek returns the offset of a position, or the end of its line if the position is after it.
func (c *Cursor) Seek(line, column int) uint32 {
	want := mark{uint32(max(line, 1)), uint32(max(column, 1))}
	if c.mark.line == 0 || want.compare(c.mark) < 0 || want.line > c.mark.line+markEvery {
		c.jump(want)
	}
	for c.mark.line < want.line {
		end := strings.IndexByte(c.lines[c.at:], '\n')
		if end < 0 {
			c.at = len(c.lines)
			break
		}
		c.at += end + 1
		c.mark = mark{c.mark.line + 1, 1}
	}
	for c.mark.column < want.column && c.at < len(c.lines) && c.lines[c.at] != '\n' {
		c.at++
		for c.at < len(c.lines) && c.lines[c.at]&0xc0 == 0x80 {
			c.at++
		}
		c.mark.column++
	}

	return uint32(c.at)
}

// jump moves to the last mark before a position, at the start of a character.
func (c *Cursor) jump(want mark) {
	i, found := slices.BinarySearchFunc(c.marks, want, mark.compare)
	if !found {
		i = max(i-1, 0)
	}
	c.at, c.mark = i*markEvery, c.marks[i]
	for c.at < len(c.lines) && c.lines[c.at]&0xc0 == 0x80 {
		c.at++
	}
}

func (m mark) compare(other mark) int {
	return cmp.Or(cmp.Compare(m.line, other.line), cmp.Compare(m.column, other.column))
}
