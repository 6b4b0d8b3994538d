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

// The parser keeps some hundred bytes for every value until it has read a whole
// document. So a large document is read in pieces, on all cores: the entries of its
// large lists and mappings are parsed in groups, as documents of their own. The
// result is that of the whole document: each piece ends with the beginning of
// another entry, so the parser reads the same tokens, at the same indentation. A cut
// within a text or a flow collection leaves that open, which is an error. Whatever
// cannot be parsed so, for any reason, is parsed as a whole, or refused.

// pieceSize is in bytes: what the parser needs for a piece is small beside the
// rest, and what it costs to begin one is too.
const pieceSize = 8 << 10

// bytesOfReader is how long a document is for each piece that is read at once.
const bytesOfReader = 512 << 10

// errWhole means that a document must be read as a whole.
var errWhole = errors.New("this cannot be read in pieces")

// pieceError is what is wrong with a piece, which may be where it was cut.
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
	// budget is shared by pieces that are read one after the other: others have no aliases.
	budget *budget
}

// readPieces reads a document in pieces of about so many bytes.
func readPieces(s *Source, restore *strings.Replacer, data []byte, size int) (*Tree, model.Problems, error) {
	head, line := prologue(data)
	if len(data)-head < size || hasFarEffect(data) || bytes.Contains(data[head:], []byte("\n---")) || bytes.Contains(data[head:], []byte("\n...")) {
		return nil, nil, errWhole
	}
	c := cutter{text: data, size: size}
	if !c.cut(head, len(data), line, 0, 0, 0) {
		return nil, nil, errWhole
	}
	p := pieces{source: s, restore: restore, text: c.text, steps: c.steps, budget: &budget{kept: wholeLimit(data)}}
	for _, s := range p.steps {
		if s.to-s.from > 2*size && countMarks(p.text[s.from:s.to]) > wholeLimit(data) {
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

// hasFarEffect reports whether the parser may read something otherwise because of
// what is far before it: the meaning of a tag, a line that \r alone ends, a byte
// order mark, for which it looks in the wrong place of its buffer.
func hasFarEffect(data []byte) bool {
	return bytes.Contains(data, []byte("%TAG")) || bytes.Contains(data, []byte("\ufeff")) || bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n"))
}

// mayAnchor reports whether a value may be given a name.
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

// prologue returns where the content of a document begins.
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

// lines is where the lines of a piece are: the one that the parser calls parsed is
// the document's line.
type lines struct {
	parsed, document int
	// endLine and endColumn are what follows the piece, if that is not in it: the place
	// of a value that is missing at its end.
	endLine, endColumn int
}

// placeIn returns the place in the document that the parser calls so.
func placeIn(pieces []lines, line, column int) (int, int) {
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

// linesOf returns where the lines of a piece are.
func (p *pieces) linesOf(s step, parsed int) lines {
	out := lines{parsed: parsed, document: s.line}
	if !s.more && s.to < len(p.text) {
		out.endLine = s.line + bytes.Count(p.text[s.from:s.to], []byte("\n"))
		out.endColumn = spaces(p.text[s.to:]) + 1
	}

	return out
}

// ending begins another entry of the same list or mapping, where one follows.
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

// separator ends a document in a file of several.
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

// parallel returns what reads the pieces one after the other, on all cores, a few
// ahead, and what ends that.
func (p *pieces) parallel() (next func(step) (*converter, error), stop func()) {
	type result struct {
		c   *converter
		err error
	}
	// Two of a short document may need as much as the rest of it.
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

// stream is all pieces as the documents of one file.
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

// serial returns what reads the pieces one after the other with one parser: it knows
// the anchors of those before.
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
	// It may run in a goroutine of its own, in which nobody else recovers.
	defer func() {
		if recover() != nil {
			err = errWhole
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
		return nil, errWhole
	}
	if s.kind != readItems {
		if c.entries(root, s.depth, nil); s.kind == readKey && len(c.nodes) != 2 {
			return nil, errWhole
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

// ended returns an error where something is behind the last piece of a parser.
func (p *pieces) ended(s step, dec *yaml.Decoder) error {
	err := decodeNode(dec, &yaml.Node{})
	if errors.Is(err, io.EOF) {
		return nil
	}

	return p.failed(s, cmp.Or(err, errWhole))
}

func (p *pieces) failed(s step, err error) error {
	return pieceError{error: err, piece: s, text: p.text[s.from:s.to]}
}

// trim takes the ending off what was parsed of a piece, and reports whether all is as
// it must be.
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
