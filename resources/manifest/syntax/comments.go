package syntax

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// The comments above a key that check its resolved value.
const (
	AnnotationRequire  = "@require"
	AnnotationValidate = "@validate"
)

// comment is one of a document, without its sign.
type comment struct {
	Text string
	Pos  model.Position
}

// Lines returns the lines of a document, nil when no comment of it can be meant to check anything.
func (d *Document) Lines() [][]byte {
	if !mayCheck.Match(d.text) {
		return nil
	}

	return bytes.Split(d.text, []byte("\n"))
}

var (
	mayCheck = regexp.MustCompile(`#[ \t]*@[A-Za-z]`)
	// trailing is a comment behind something, which begins with a word of its own.
	trailing = regexp.MustCompile(`[ \t]#[ \t]*(@[A-Za-z]+)`)
)

// CommentsAbove returns the comments directly above a key, in their order: those
// in its column or before it. What is further right may be a line of a text.
func CommentsAbove(lines [][]byte, key model.Position) []comment {
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
		c := comment{strings.TrimSpace(string(text[1:])), model.Position{File: key.File, Line: i + 1, Column: column}}
		out = append([]comment{c}, out...)
	}

	return out
}

// CheckComments finds the comments at keys of data and overrides that are meant
// to check a value and do not: a check that is not made is worse than none.
func (d *Document) CheckComments() model.Problems {
	lines := d.Lines()
	if lines == nil {
		return nil
	}
	var out model.Problems
	misplaced(lines, d.Data, &out)
	for _, o := range d.Overrides.Entries() {
		misplaced(lines, o, &out)
	}

	return out
}

func misplaced(lines [][]byte, v document.Node, out *model.Problems) {
	for item := range v.Items() {
		misplaced(lines, item, out)
	}
	for key, value := range v.Entries() {
		at := key.Pos()
		for _, c := range CommentsAbove(lines, at) {
			word, _, _ := strings.Cut(c.Text, " ")
			meant := meantBy(word)
			switch {
			case meant == "":
			case meant != word:
				out.Add(c.Pos, "did you mean `"+meant+"`?", "the comment `%s` checks nothing", word)
			case c.Pos.Column != at.Column && begins(lines, at):
				out.Add(c.Pos, "begin it in the column of the key", "the comment `%s` checks nothing, because it is not indented as `%s` below it", word, key.Text())
			}
		}
		behind(lines, key, value, out)
		misplaced(lines, value, out)
	}
}

// begins reports whether a key is the first on its line, or in an item of a list.
func begins(lines [][]byte, key model.Position) bool {
	// A lone \r is a line break to YAML only.
	if key.Line > len(lines) {
		return false
	}
	before := lines[key.Line-1]

	return len(bytes.Trim(before[:min(key.Column-1, len(before))], " -")) == 0
}

// behind reports a comment behind a key instead of above it.
func behind(lines [][]byte, key, value document.Node, out *model.Problems) {
	at := key.Pos()
	i := at.Line - 1
	if i < 0 || i >= len(lines) || bytes.IndexByte(lines[i], '#') < 0 {
		return
	}
	for _, found := range trailing.FindAllSubmatchIndex(lines[i], -1) {
		word := string(lines[i][found[2]:found[3]])
		meant := meantBy(word)
		// It may be within a text of the same line.
		if meant == "" || holdsText(value, word) || strings.Contains(key.Text(), word) {
			continue
		}
		pos := document.PositionAt(at.File, lines[i], found[0]+1)
		pos.Line = at.Line
		out.Add(pos, "put it on a line of its own above the key", "the comment `%s` checks nothing behind the key", word)
	}
}

func holdsText(v document.Node, text string) bool {
	for item := range v.Items() {
		if holdsText(item, text) {
			return true
		}
	}
	for key, value := range v.Entries() {
		if strings.Contains(key.Text(), text) || holdsText(value, text) {
			return true
		}
	}

	return strings.Contains(v.Text(), text)
}

// meantBy returns the check that a word is or is likely meant to be, empty for
// the words of ordinary comments.
func meantBy(word string) string {
	if !strings.HasPrefix(word, "@") {
		return ""
	}

	return document.Nearest(strings.ToLower(strings.TrimRight(word, ":,.")), []string{AnnotationRequire, AnnotationValidate})
}
