package manifest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// These comments above a key check its resolved value.
const (
	annotationRequire  = "@require"
	annotationValidate = "@validate"
	// annotationRequired is an alias of annotationRequire.
	annotationRequired = "@required"
)

// comment is a comment without its sign.
type comment struct {
	text string
	pos  model.Position
	// within reports whether it is inside a multi-line value.
	within bool
}

// word returns the first word of a comment.
func (c comment) word() string {
	word, _, _ := strings.Cut(c.text, " ")

	return word
}

// annotationOf returns the check of a comment and the text after it. Both are empty if the comment
// checks nothing.
func annotationOf(text string) (annotation, rest string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case annotationRequire, annotationRequired:
		return annotationRequire, strings.TrimSpace(rest)
	case annotationValidate:
		return annotationValidate, strings.TrimSpace(rest)
	default:
		return "", ""
	}
}

// Lines returns the lines of a document, or nil if no comment looks like a check.
func (d *Document) Lines() [][]byte {
	if !mayCheck.Match(d.text) {
		return nil
	}

	return bytes.Split(d.text, []byte("\n"))
}

var (
	mayCheck = regexp.MustCompile(`#[ \t]*@[A-Za-z]`)
	// trailing matches a check in a comment after a value.
	trailing = regexp.MustCompile(`[ \t]#[ \t]*(@[A-Za-z]+)`)
)

// commentsAbove returns the comments directly above a key in order. It ignores comments to the
// right of the column of the key, which may be lines of a text.
func commentsAbove(lines [][]byte, key model.Position) []comment {
	var out []comment
	for i := key.Line - 2; i >= 0 && i < len(lines); i-- {
		line := bytes.TrimRight(lines[i], " \t\r")
		text := bytes.TrimLeft(line, " ")
		column := len(line) - len(text) + 1
		switch {
		case len(text) == 0:
			continue
		case text[0] != '#' || column > key.Column:
			return out
		}
		c := comment{text: strings.TrimSpace(string(text[1:])), pos: model.Position{File: key.File, Line: i + 1, Column: column}}
		out = append([]comment{c}, out...)
	}

	return out
}

// CheckComments reports comments at keys of data and overrides that look like checks but check
// nothing.
func (d *Document) CheckComments() model.Problems {
	lines := d.Lines()
	if lines == nil {
		return nil
	}
	m := misplaced{lines: lines, behind: trailingComments{lines: lines}}
	m.value(d.Data)
	m.behind = trailingComments{lines: lines}
	for _, o := range d.Overrides.Entries {
		m.value(o.Value)
	}

	return m.out
}

// misplaced finds comments that look like checks but check nothing.
type misplaced struct {
	lines  [][]byte
	behind trailingComments
	out    model.Problems
}

func (m *misplaced) value(v document.Value) {
	for _, item := range v.Items {
		if item.Kind != document.Map && item.Kind != document.List {
			for _, c := range m.behind.at(item.Pos) {
				m.out.Add(c.pos, "put it above the key of the list", "the comment `%s` checks nothing after an item of a list", c.word())
			}
		}
		m.value(item)
	}
	for _, e := range v.Entries {
		at := e.Pos
		for _, c := range commentsAbove(m.lines, at) {
			meant := meantBy(c.word())
			switch {
			case meant == "":
			case meant != c.word():
				m.misspelled(c, meant)
			case c.pos.Column != at.Column && begins(m.lines, at):
				m.out.Add(c.pos, "begin it in the column of the key", "the comment `%s` checks nothing, because it is not indented as `%s` below it", c.word(), e.Key)
			}
		}
		for _, c := range m.behind.at(at) {
			switch meant := meantBy(c.word()); {
			case meant != c.word():
				m.misspelled(c, meant)
			case c.within:
				m.out.Add(c.pos, "put it on a separate line above the key", "the comment `%s` checks nothing within the value of `%s`", c.word(), e.Key)
			case !begins(m.lines, at):
				m.out.Add(c.pos, "put it on a separate line above the key", "the comment `%s` checks nothing, because its line does not begin with a key", c.word())
			}
		}
		m.value(e.Value)
	}
}

func (m *misplaced) misspelled(c comment, meant string) {
	m.out.Add(c.pos, "did you mean `"+meant+"`?", "the comment `%s` checks nothing", c.word())
}

// begins reports whether a key is the first word of its line, or of a list item.
func begins(lines [][]byte, key model.Position) bool {
	// A lone \r is a line break to YAML only.
	if key.Line > len(lines) {
		return false
	}
	before := lines[key.Line-1]

	return len(bytes.Trim(before[:min(key.Column-1, len(before))], " -")) == 0
}

// trailingComments finds the comments after values. Call it for the keys in the order of the
// document.
type trailingComments struct {
	// lines are the lines of the document.
	lines [][]byte
	// read is the last line that was read.
	read int
}

// key returns the comments that check the value of a key. The key must begin its line.
func (b *trailingComments) key(at model.Position) []comment {
	found := b.at(at)
	if !begins(b.lines, at) {
		return nil
	}

	return slices.DeleteFunc(found, func(c comment) bool { return c.within })
}

// at returns the comments after a key or item that begins at a position: on its line, and on the
// following lines of a quoted text or flow collection. It returns each line once.
func (b *trailingComments) at(at model.Position) []comment {
	if at.Line <= b.read {
		return nil
	}
	var out []comment
	var state lineState
	for i := at.Line - 1; i >= 0 && i < len(b.lines); i++ {
		if from := state.comment(b.lines[i]); from >= 0 {
			out = append(out, meantOn(b.lines[i], from, model.Position{File: at.File, Line: i + 1}, state.open())...)
		}
		if !state.open() {
			b.read = i + 1
			return out
		}
	}

	return nil
}

// meantOn returns the comments of a line, from an offset, that look like checks.
func meantOn(line []byte, from int, at model.Position, within bool) []comment {
	var out []comment
	found := trailing.FindAllSubmatchIndex(line[from:], -1)
	for n, match := range found {
		end := len(line)
		if n+1 < len(found) {
			end = from + found[n+1][0]
		}
		if meantBy(string(line[from+match[2]:from+match[3]])) == "" {
			continue
		}
		pos := document.PositionAt(at.File, line, from+match[0]+1)
		pos.Line = at.Line
		out = append(out, comment{text: string(bytes.TrimSpace(line[from+match[2] : end])), pos: pos, within: within})
	}

	return out
}

// lineState is the open quoted text and flow collections at the end of a line.
type lineState struct {
	quote byte
	depth int
}

func (s *lineState) open() bool { return s.quote != 0 || s.depth > 0 }

// comment reads a line and returns the offset of the space before its comment, or -1.
func (s *lineState) comment(line []byte) int {
	starts := true // whether a value may begin here
	for i := 0; i < len(line); i++ {
		c, last := line[i], i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' || line[i+1] == '\r'
		switch {
		case s.quote == '"' && c == '\\':
			i++
		case s.quote != 0:
			if c == s.quote {
				s.quote, starts = 0, false
			}
		case starts && (c == '"' || c == '\''):
			s.quote = c
		case starts && (c == '&' || c == '!'):
			for ; i+1 < len(line) && line[i+1] != ' '; i++ { // an anchor or a tag
			}
		case c == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t'):
			return i - 1
		case (starts || s.depth > 0) && (c == '[' || c == '{'):
			s.depth++
			starts = true
		case s.depth > 0 && (c == ']' || c == '}'):
			s.depth--
		case c == ' ' || c == '\t':
		case c == ',' && s.depth > 0, c == ':' && (last || s.depth > 0), starts && last && (c == '-' || c == '?'):
			starts = true
		default:
			starts = false
		}
	}

	return -1
}

// meantBy returns the check that a word is or resembles. It is empty for other words.
func meantBy(word string) string {
	if !strings.HasPrefix(word, "@") {
		return ""
	}

	return document.Nearest(strings.ToLower(strings.TrimRight(word, ":,.")), []string{annotationRequire, annotationValidate, annotationRequired})
}
