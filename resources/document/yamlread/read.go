// Package yamlread parses YAML into a Tree, a compact form of a document with the position of every value.
package yamlread

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// yamlReader reads documents in YAML.
type yamlReader struct {
	name string
	// restore restores the characters that were hidden from the parser, or is nil.
	restore *strings.Replacer
}

// Read reads a document in YAML. breaks reports whether it contains any of Breaks. ok reports
// whether its syntax is valid.
func Read(name string, data []byte, breaks bool) (t *Tree, problems model.Problems, ok bool) {
	y := yamlReader{name: name}
	if breaks {
		data, y.restore = hideBreaks(data)
	}

	return y.read(asYAML11(data))
}

// read reads a document in pieces or as a whole. ok reports whether its syntax is valid, with or
// without asIndented.
func (y yamlReader) read(data []byte) (t *Tree, problems model.Problems, ok bool) {
	if t, problems, ok = y.once(data); ok {
		return t, problems, ok
	}
	if indented, changed := asIndented(data); changed {
		if again, found, ok := y.once(indented); ok {
			return again, found, ok
		}
	}

	return t, problems, ok
}

func (y yamlReader) once(data []byte) (*Tree, model.Problems, bool) {
	s := NewSource(y.name, string(data), true)
	t, problems, err := readPieces(s, y.restore, data, pieceSize)
	if err == nil {
		return t, problems, true
	}
	if len(data) > pieceSize && countMarks(data) > parseLimit(data) {
		return nil, y.tooLarge(data, err), false
	}

	return y.readAtOnce(s, data)
}

// readAtOnce reads a document at once.
func (y yamlReader) readAtOnce(s *Source, data []byte) (*Tree, model.Problems, bool) {
	t := NewTree(s)
	first, second, err := parse(data)
	switch {
	case err != nil:
		t.Add(Node{})
		return t, model.Problems{syntaxProblem(y.name, data, err)}, false
	case second != nil:
		t.Add(Node{})
		at := model.Position{File: y.name, Line: second.Line, Column: second.Column}
		return t, model.ProblemAt(at, "put each document into a separate file", "a second document begins here"), false
	case first == nil:
		t.Add(Node{})
		return t, nil, true
	}
	c := newConverter(s, y.restore, &budget{kept: parseLimit(data)})
	c.value(first, 0)
	t.Others = c.Others
	for _, n := range c.nodes {
		t.Add(n)
	}

	return t, c.problems, true
}

// tooLarge returns the problem of a document that cannot be read in pieces and is too large to be
// read as a whole: its first syntax error if one is found.
func (y yamlReader) tooLarge(data []byte, err error) model.Problems {
	const hint = "write its large lists and mappings with an item or key at the beginning of each line"
	failed := pieceError{piece: step{line: 1}, text: data}
	dense := !errors.As(err, &failed) || errors.Is(err, errTooDense)
	limit := parseLimit(data)
	text := failed.text
	if dense {
		text = text[:endOfMarks(text, limit)]
	}
	// An unexpected end may be the result of the cut.
	if err := decodeNode(yaml.NewDecoder(bytes.NewReader(text)), &yaml.Node{}); err != nil && !errors.Is(err, io.EOF) && (!dense || readUntilError(text) < len(text)) {
		problem := syntaxProblem(y.name, text, err)
		problem.Pos.Line += failed.piece.line - 1
		return model.Problems{problem}
	}
	if countMarks(data) > MaxValues {
		return model.Problems{TooMany(y.name)}
	}
	at := model.Position{File: y.name, Line: failed.piece.line, Column: 1}
	if dense {
		return model.ProblemAt(at, hint+", or the document as JSON", "this value contains more than %d values and cannot be split", limit)
	}

	return model.ProblemAt(at, hint, "the document cannot be read in pieces from here, and contains more than %d values", limit)
}
