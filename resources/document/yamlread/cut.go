package yamlread

import (
	"bytes"
)

// cutter cuts a document in block style into pieces: groups of entries of its large lists and
// mappings. It guesses the boundaries from the lines. Parsing the pieces verifies them.
type cutter struct {
	// text is a copy if own is set. If an item is cut too, its dash becomes a space.
	text  []byte
	own   bool
	size  int
	steps []step
}

// step is a step of reading a document in pieces.
type step struct {
	kind stepKind
	// from and to are offsets. line is the number of the first line.
	from, to, line int
	// column is the number of spaces before the entries.
	column int
	// depth is the nesting depth of the list or mapping.
	depth int
	// more reports whether another entry of the same list or mapping follows.
	more bool
}

type stepKind uint8

const (
	openList stepKind = iota
	openMap
	// readItems and readEntries read a piece with items of a list, or with entries of a mapping.
	readItems
	readEntries
	// readKey reads the key of an entry whose value is cut into pieces.
	readKey
	closeLast
)

// cut adds the steps for the text between two offsets if it is one list or mapping with at least
// the given indentation.
func (c *cutter) cut(from, to, line, depth, leastList, leastMap int) bool {
	text, offset, number := contentLine(c.text[from:to])
	column := spaces(text)
	kind, piece, least := openMap, readEntries, leastMap
	switch {
	case len(text) == 0 || depth > MaxDepth:
		return false
	case isItem(text[column:]):
		kind, piece, least = openList, readItems, leastList
	case !isKey(text[column:]):
		return false
	}
	if column < least {
		return false
	}
	start := from + offset
	c.steps = append(c.steps, step{kind: kind, from: start + column})
	g := group{cutter: c, step: step{kind: piece, from: from, line: line, column: column, depth: depth}}
	g.entry, g.entryLine = start, line+number
	c.split(&g, to)
	c.steps = append(c.steps, step{kind: closeLast})

	return true
}

// split finds the entries after the first, up to an offset.
func (c *cutter) split(g *group, to int) {
	at, line := g.entry, g.entryLine
	for text := range bytes.Lines(c.text[g.entry:to]) {
		if at > g.entry && g.begins(text) {
			g.end(at, line, true)
		}
		at += len(text)
		line++
	}
	g.end(to, line, false)
	g.flush(to, line, false)
}

// group collects the entries of a piece.
type group struct {
	*cutter
	step             step
	entry, entryLine int
}

// begins reports whether a line starts an entry.
func (g *group) begins(line []byte) bool {
	if spaces(line) != g.step.column {
		return false
	}
	if g.step.kind == readItems {
		return isItem(line[g.step.column:])
	}

	return isKey(line[g.step.column:])
}

// end ends an entry at an offset. It cuts a large entry if possible, or else makes it a separate
// piece.
func (g *group) end(at, line int, more bool) {
	if at-g.entry > g.size {
		g.flush(g.entry, g.entryLine, true)
		if g.within(at) {
			g.step.from, g.step.line = at, line
		}
	}
	if at-g.step.from >= g.size {
		g.flush(at, line, more)
	}
	g.entry, g.entryLine = at, line
}

// flush makes a piece of the collected entries.
func (g *group) flush(to, line int, more bool) {
	if to > g.step.from {
		piece := g.step
		piece.to, piece.more = to, more
		g.steps = append(g.steps, piece)
	}
	g.step.from, g.step.line = to, line
}

// within cuts the value of the entry that ends at an offset.
func (g *group) within(to int) bool {
	column, depth := g.step.column, g.step.depth+1
	if g.step.kind == readItems {
		if !g.own {
			g.text, g.own = bytes.Clone(g.text), true
		}
		dash := &g.text[g.entry+column]
		*dash = ' '
		if g.cut(g.entry, to, g.entryLine, depth, column+1, column+1) {
			return true
		}
		*dash = '-'
		return false
	}
	head := bytes.IndexByte(g.text[g.entry:to], '\n') + 1
	if head == 0 || !isBareKey(g.text[g.entry+column:g.entry+head]) {
		return false
	}
	before := len(g.steps)
	g.steps = append(g.steps, step{kind: readKey, from: g.entry, to: g.entry + head, line: g.entryLine})
	if g.cut(g.entry+head, to, g.entryLine+1, depth, column, column+1) {
		return true
	}
	g.steps = g.steps[:before]

	return false
}

// contentLine returns the first line that is not empty or a comment, its offset, and the number of
// lines before it.
func contentLine(text []byte) (line []byte, offset, number int) {
	for line := range bytes.Lines(text) {
		if content := bytes.TrimSpace(line); len(content) > 0 && content[0] != '#' {
			return line, offset, number
		}
		offset += len(line)
		number++
	}

	return nil, offset, number
}

// isItem reports whether a line begins with a dash.
func isItem(line []byte) bool {
	return len(line) > 0 && line[0] == '-' && isBlank(line[1:])
}

func isBlank(text []byte) bool {
	return len(text) == 0 || bytes.IndexByte([]byte(" \t\r\n"), text[0]) >= 0
}

// isKey reports whether a line seems to begin with a key.
func isKey(line []byte) bool { return behindKey(line) != nil }

// isBareKey reports whether a line contains only a key.
func isBareKey(line []byte) bool {
	rest := behindKey(line)
	content := bytes.TrimSpace(rest)

	return rest != nil && (len(content) == 0 || content[0] == '#')
}

// behindKey returns the text after the key and colon at the start of a line, or nil if there seems
// to be no key.
func behindKey(line []byte) []byte {
	if len(line) == 0 || isBlank(line) || bytes.IndexByte([]byte("#&*!|>%@`[]{},"), line[0]) >= 0 || bytes.IndexByte([]byte("-?:"), line[0]) >= 0 && isBlank(line[1:]) {
		return nil
	}
	if quote := line[0]; quote == '"' || quote == '\'' {
		end := bytes.IndexByte(line[1:], quote)
		rest := bytes.TrimLeft(line[end+2:], " \t")
		if end < 0 || len(rest) == 0 || rest[0] != ':' || !isBlank(rest[1:]) {
			return nil
		}
		return rest[1:]
	}
	for i, c := range line {
		switch {
		case c == ':' && isBlank(line[i+1:]):
			return line[i+1:]
		case c == '#' && isBlank(line[i-1:]):
			return nil
		}
	}

	return nil
}
