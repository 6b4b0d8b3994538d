package document

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// The parser keeps some hundred bytes for every value until it has read a whole
// document. So a large list is read in pieces, on all cores: its items are parsed
// in groups, as documents of their own, and the rest with the last item only. The
// result is that of the whole document: each piece ends with the dash of the next
// item, so the parser reads the same tokens, at the same indentation. A cut
// within a text or a flow collection leaves that open, which is an error. Whatever
// cannot be parsed so, for any reason, is parsed as a whole.

// pieceSize is in bytes: what the parser needs for a piece is small beside the
// rest, and what it costs to begin one is too.
const pieceSize = 64 << 10

// listRun is a list in the block style, as its lines look.
type listRun struct {
	// column is the number of spaces before the dashes.
	column int
	// line is the number of lines before the first item.
	line int
	// first and last are the offsets of items, longest is the length of one.
	first, last, longest int
}

// gain is how many bytes need not be parsed at once when the list is cut.
func (r listRun) gain() int { return r.last - r.first - r.longest }

// longestRun returns the list that is cut best. It may be a text that looks like one.
func longestRun(data []byte) (best listRun) {
	var open []listRun
	line, at := 0, 0
	for text := range bytes.Lines(data) {
		indent := spaces(text)
		item := isItem(text[indent:])
		if content := bytes.TrimSpace(text); len(content) > 0 && content[0] != '#' {
			for n := len(open) - 1; n >= 0 && (open[n].column > indent || open[n].column == indent && !item); n-- {
				open = open[:n]
			}
		}
		switch n := len(open) - 1; {
		case !item:
		case n >= 0 && open[n].column == indent:
			open[n].longest, open[n].last = max(open[n].longest, at-open[n].last), at
			if open[n].gain() > best.gain() {
				best = open[n]
			}
		default:
			open = append(open, listRun{column: indent, line: line, first: at, last: at})
		}
		line++
		at += len(text)
	}

	return best
}

// isItem reports whether a line begins with the dash of an item.
func isItem(line []byte) bool {
	return len(line) > 0 && line[0] == '-' && (len(line) == 1 || bytes.IndexByte([]byte(" \t\r\n"), line[1]) >= 0)
}

// piece is a group of items, up to the dash of the next.
type piece struct {
	text []byte
	// line is the number of lines before it.
	line int
	// items and problems are what it holds.
	items    []Value
	problems model.Problems
}

// pieces cuts a list, without its last item.
func (r listRun) pieces(data []byte, size int) (out []piece) {
	start, from, at, line := r.first, r.line, r.first, r.line
	for text := range bytes.Lines(data[r.first : r.last+r.column+1]) {
		if at == r.last || at-start >= size && spaces(text) == r.column && isItem(text[r.column:]) {
			out = append(out, piece{text: data[start : at+r.column+1], line: from})
			start, from = at, line
		}
		at += len(text)
		line++
	}

	return out
}

// read parses and converts a piece of a list that is depth deep. It reports false
// when that may not be what the whole document has there.
func (p *piece) read(c converter, depth int) (ok bool) {
	// It runs in a goroutine of its own, in which nobody else recovers.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	node, second, err := parse(p.text)
	if err != nil || second != nil || node.Kind != yaml.SequenceNode || isAnchored(node) {
		return false
	}
	count := len(node.Content) - 1
	if node.Content[count].Line != bytes.Count(p.text, []byte("\n"))+1 {
		return false
	}
	node.Content = node.Content[:count]
	p.items, p.problems = c.value(node, depth).Items, c.problems

	return !c.stopped
}

// hasFarEffect reports whether the parser may read something otherwise because of
// what is far before it: the meaning of a tag, a line that \r alone ends, a byte
// order mark, for which it looks in the wrong place of its buffer.
func hasFarEffect(data []byte) bool {
	return bytes.Contains(data, []byte("%TAG")) || bytes.Contains(data, []byte("\ufeff")) || bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n"))
}

// isAnchored reports whether an alias elsewhere may mean something in a node.
func isAnchored(n *yaml.Node) bool {
	return n.Anchor != "" || slices.ContainsFunc(n.Content, isAnchored)
}

// readInPieces is Read of a large document without mistakes of its syntax.
func readInPieces(c converter, data []byte, size int) (v Value, problems model.Problems, ok bool) {
	run := longestRun(data)
	if run.gain() < size || hasFarEffect(data) {
		return v, nil, false
	}
	node, second, err := parse(slices.Concat(data[:run.first], data[run.last:]))
	if err != nil || second != nil || node == nil {
		return v, nil, false
	}
	c.after, c.shift = run.line+1, bytes.Count(data[run.first:run.last], []byte("\n"))
	c.run, c.pieces = run, run.pieces(data, size)
	v = c.value(node, 0)

	return v, c.problems, c.taken == 1 && !c.stopped
}

// isCut reports whether a list is the one that was cut.
func (c *converter) isCut(n *yaml.Node) bool {
	return c.pieces != nil && n.Line == c.after && n.Column == c.run.column+1 && len(n.Content) == 1
}

// cutItems returns the items of the list that was cut, but for the last. An alias
// may not mean them: it counts what it expands to.
func (c *converter) cutItems(depth int) []Value {
	if c.taken++; c.taken > 1 || c.aliases > 0 {
		c.stopped = true
		return nil
	}
	var next, failed atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(c.pieces)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(c.pieces) && failed.Load() == 0; i = int(next.Add(1)) - 1 {
				p := &c.pieces[i]
				if !p.read(converter{name: c.name, restore: c.restore, shift: p.line}, depth) {
					failed.Store(1)
				}
			}
		})
	}
	all.Wait()
	c.stopped = failed.Load() > 0
	count := 1
	for _, p := range c.pieces {
		count += len(p.items)
	}
	out := make([]Value, 0, count)
	for _, p := range c.pieces {
		out = append(out, p.items...)
		c.problems.Append(p.problems...)
	}

	return out
}
