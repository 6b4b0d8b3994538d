package yamlread

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// The parser needs some hundred bytes per value until it has read a document. So a large document
// is read in pieces, on all cores: groups of entries of its large lists and mappings are parsed as
// separate documents. The result equals the result of the whole document, because each piece ends
// with the beginning of another entry, so the parser reads the same tokens with the same
// indentation. A cut inside a text or a flow collection leaves it open, which is an error. Then the
// document is parsed as a whole or rejected.

// pieceSize is in bytes. It balances the memory of a piece and the cost of starting one.
const pieceSize = 8 << 10

// bytesOfReader is the minimum size of a document per concurrent piece.
const bytesOfReader = 512 << 10

// errNotInPieces means that the document must be read as a whole.
var errNotInPieces = errors.New("this cannot be read in pieces")

// pieceError is the error of a piece. A cut may have caused it.
type pieceError struct {
	error
	piece step
	text  []byte
}

func (e pieceError) Unwrap() error { return e.error }

// pieces reads the pieces of a document.
type pieces struct {
	source  *Source
	restore *strings.Replacer
	text    []byte
	steps   []step
	// budget is shared by pieces that are read in sequence. Pieces that are read concurrently have
	// no aliases.
	budget *budget
}

// readPieces reads a document in pieces of about size bytes.
func readPieces(s *Source, restore *strings.Replacer, data []byte, size int) (*Tree, model.Problems, error) {
	head, line := prologue(data)
	if len(data)-head < size || hasFarEffect(data) || bytes.Contains(data[head:], []byte("\n---")) || bytes.Contains(data[head:], []byte("\n...")) {
		return nil, nil, errNotInPieces
	}
	c := cutter{text: data, size: size}
	if !c.cut(head, len(data), line, 0, 0, 0) {
		return nil, nil, errNotInPieces
	}
	p := pieces{source: s, restore: restore, text: c.text, steps: c.steps, budget: &budget{kept: parseLimit(data)}}
	for _, s := range p.steps {
		if s.to-s.from > 2*size && countMarks(p.text[s.from:s.to]) > parseLimit(data) {
			return nil, nil, p.failed(s, errTooDense)
		}
	}
	read := p.serial()
	if !mayAnchor(data) {
		next, stop := p.parallel()
		defer stop()
		read = next
	}
	a := assembly{out: NewTree(s)}
	for _, s := range p.steps {
		if err := a.do(s, read); err != nil {
			return nil, nil, err
		}
		if a.stopped {
			break
		}
	}

	return a.out, a.problems, nil
}

// hasFarEffect reports whether distant text may affect the parser: the meaning of a tag, a line
// that ends with \r alone, or a byte order mark, which the parser expects at the wrong place of its
// buffer.
func hasFarEffect(data []byte) bool {
	return bytes.Contains(data, []byte("%TAG")) || bytes.Contains(data, []byte("\ufeff")) || bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n"))
}

// mayAnchor reports whether the text may contain an anchor.
func mayAnchor(data []byte) bool {
	for at := 0; ; {
		next := bytes.IndexByte(data[at:], '&')
		if next < 0 {
			return false
		}
		at += next + 1
		if at == 1 || bytes.IndexByte([]byte(" \t\n[{,:"), data[at-2]) >= 0 {
			if at < len(data) && data[at] != '&' && !isBlank(data[at:]) {
				return true
			}
		}
	}
}

// prologue returns the offset of the content of a document.
func prologue(data []byte) (at, line int) {
	line = 1
	for text := range bytes.Lines(data) {
		content := bytes.TrimSpace(text)
		if len(content) > 0 && content[0] != '#' && content[0] != '%' && !bytes.Equal(content, []byte("---")) {
			break
		}
		at += len(text)
		line++
	}

	return at, line
}

// lines maps lines of a piece to lines of the document. parsed is a line of the piece.
type lines struct {
	parsed, document int
	// endLine and endColumn are the position after the piece, for a missing value at its end.
	endLine, endColumn int
}

// positionIn converts a position of the parser to a position in the document.
func positionIn(pieces []lines, line, column int) (int, int) {
	for _, p := range slices.Backward(pieces) {
		if line < p.parsed {
			continue
		}
		if line += p.document - p.parsed; p.endLine > 0 && line >= p.endLine {
			return p.endLine, p.endColumn
		}
		break
	}

	return line, column
}

// linesOf returns the lines of a piece.
func (p *pieces) linesOf(s step, parsed int) lines {
	out := lines{parsed: parsed, document: s.line}
	if !s.more && s.to < len(p.text) {
		out.endLine = s.line + bytes.Count(p.text[s.from:s.to], []byte("\n"))
		out.endColumn = spaces(p.text[s.to:]) + 1
	}

	return out
}

// ending is the beginning of another entry of the same list or mapping, if one follows.
func (s step) ending() string {
	switch {
	case !s.more:
		return ""
	case s.kind == readItems:
		return strings.Repeat(" ", s.column) + "-"
	default:
		return strings.Repeat(" ", s.column) + "x:"
	}
}

// separator separates the documents of a stream.
func (s step) separator() string {
	if s.more {
		return "\n---\n"
	}

	return "---\n"
}

// isRead reports whether a step reads a piece.
func (s step) isRead() bool { return s.kind == readItems || s.kind == readEntries || s.kind == readKey }

func (p *pieces) reader(s step) io.Reader {
	return io.MultiReader(bytes.NewReader(p.text[s.from:s.to]), strings.NewReader(s.ending()))
}

// parallel returns a function that returns the pieces in order and reads a few ahead on all cores,
// and a function that stops it.
func (p *pieces) parallel() (next func(step) (*converter, error), stop func()) {
	type result struct {
		c   *converter
		err error
	}
	// Two pieces of a short document may need as much memory as the rest.
	atOnce := max(min(runtime.GOMAXPROCS(0), len(p.text)/bytesOfReader), 1)
	ahead := make(chan chan result, atOnce-1)
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for _, s := range p.steps {
			if !s.isRead() {
				continue
			}
			out := make(chan result, 1)
			select {
			case ahead <- out:
			case <-done:
				return
			}
			all.Go(func() {
				dec := yaml.NewDecoder(p.reader(s))
				c, err := p.read(s, dec, []lines{p.linesOf(s, 1)})
				if err == nil {
					err = p.ended(s, dec)
				}
				out <- result{c, err}
			})
		}
	})
	next = func(step) (*converter, error) {
		r := <-<-ahead
		return r.c, r.err
	}

	return next, func() { close(done); all.Wait() }
}

// stream contains all pieces as the documents of one stream.
type stream struct {
	*pieces
	next    int
	current io.Reader
}

// Read reads the next bytes of the pieces.
func (s *stream) Read(b []byte) (int, error) {
	for {
		if s.current != nil {
			if n, err := s.current.Read(b); n > 0 || err != io.EOF {
				return n, err
			}
		}
		for s.next <= s.last() && !s.steps[s.next].isRead() {
			s.next++
		}
		if s.next > s.last() {
			return 0, io.EOF
		}
		s.current = s.reader(s.steps[s.next])
		if s.next++; s.next <= s.last() {
			s.current = io.MultiReader(s.current, strings.NewReader(s.steps[s.next-1].separator()))
		}
	}
}

// serial returns a function that reads the pieces in order with one parser, which knows the anchors
// of earlier pieces.
func (p *pieces) serial() func(step) (*converter, error) {
	dec := yaml.NewDecoder(&stream{pieces: p})
	begin := 1
	var before []lines
	return func(s step) (*converter, error) {
		before = append(before, p.linesOf(s, begin))
		begin += bytes.Count(p.text[s.from:s.to], []byte("\n")) + strings.Count(s.separator(), "\n")
		c, err := p.read(s, dec, before)
		if s == p.steps[p.last()] && err == nil {
			err = p.ended(s, dec)
		}
		return c, err
	}
}

// read parses and converts a piece. Its error is a pieceError.
func (p *pieces) read(s step, dec *yaml.Decoder, before []lines) (c *converter, err error) {
	// It may run in another goroutine, where no caller recovers a panic.
	defer func() {
		if recover() != nil {
			err = errNotInPieces
		}
		if err != nil {
			err = p.failed(s, err)
		}
	}()
	c = newConverter(p.source, p.restore, p.budget)
	c.pieces = before
	var document yaml.Node
	if err := decodeNode(dec, &document); err != nil {
		return nil, err
	}
	root := document.Content[0]
	if !s.trim(root, c) {
		return nil, errNotInPieces
	}
	if s.kind != readItems {
		if c.entries(root, s.depth, nil); s.kind == readKey && len(c.nodes) != 2 {
			return nil, errNotInPieces
		}
		return c, nil
	}
	for _, item := range root.Content {
		c.value(item, s.depth+1)
	}

	return c, nil
}

// last returns the index of the step that reads the last piece.
func (p *pieces) last() int {
	i := len(p.steps) - 1
	for !p.steps[i].isRead() {
		i--
	}

	return i
}

// ended returns an error if text follows the last piece.
func (p *pieces) ended(s step, dec *yaml.Decoder) error {
	err := decodeNode(dec, &yaml.Node{})
	if errors.Is(err, io.EOF) {
		return nil
	}

	return p.failed(s, cmp.Or(err, errNotInPieces))
}

func (p *pieces) failed(s step, err error) error {
	return pieceError{error: err, piece: s, text: p.text[s.from:s.to]}
}

// trim removes the ending from a parsed piece, and reports whether the piece is valid.
func (s step) trim(root *yaml.Node, c *converter) bool {
	kind, per := yaml.MappingNode, 2
	if s.kind == readItems {
		kind, per = yaml.SequenceNode, 1
	}
	if root.Kind != kind || root.Style&yaml.FlowStyle != 0 || len(root.Content) < per {
		return false
	}
	last := root.Content[len(root.Content)-per:]
	if s.kind == readKey {
		return len(root.Content) == per && isNothing(last[1])
	}
	if !s.more {
		return true
	}
	root.Content = root.Content[:len(root.Content)-per]
	at := c.pos(last[0])

	return at.Line == s.line+strings.Count(c.Text[s.from:s.to], "\n") && isNothing(last[per-1]) && (per == 1 || at.Column == s.column+1)
}

func isNothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Anchor == "" && n.Style == 0
}
