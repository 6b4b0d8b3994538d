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
	// annotationRequired is another name of AnnotationRequire.
	annotationRequired = "@required"
)

// comment is one of a document, without its sign.
type comment struct {
	Text string
	Pos  model.Position
}

// word returns the first word of a comment.
func (c comment) word() string {
	word, _, _ := strings.Cut(c.Text, " ")

	return word
}

// Check returns the check of a comment, and the text behind it; empty if it checks nothing.
func Check(text string) (annotation, rest string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case AnnotationRequire, annotationRequired:
		return AnnotationRequire, strings.TrimSpace(rest)
	case AnnotationValidate:
		return AnnotationValidate, strings.TrimSpace(rest)
	default:
		return "", ""
	}
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
	misplaced(lines, d.Data, 0, &out)
	for _, o := range d.Overrides.Entries() {
		misplaced(lines, o, 0, &out)
	}

	return out
}

// misplaced finds these comments in a value. line is the line of the enclosing key if a
// comment behind that key counts, else 0.
func misplaced(lines [][]byte, v document.Node, line int, out *model.Problems) {
	for item := range v.Items() {
		if at := item.Pos(); item.Kind() != document.Map && item.Kind() != document.List && at.Line != line {
			for _, c := range behind(lines, at) {
				out.Add(c.Pos, "put it above the key of the list", "the comment `%s` checks nothing behind an item of a list", c.word())
			}
		}
		misplaced(lines, item, line, out)
	}
	for key, value := range v.Entries() {
		at := key.Pos()
		for _, c := range CommentsAbove(lines, at) {
			meant := meantBy(c.word())
			switch {
			case meant == "":
			case meant != c.word():
				misspelled(c, meant, out)
			case c.Pos.Column != at.Column && begins(lines, at):
				out.Add(c.Pos, "begin it in the column of the key", "the comment `%s` checks nothing, because it is not indented as `%s` below it", c.word(), key.Text())
			}
		}
		below := line
		if at.Line != line {
			if begins(lines, at) {
				below = at.Line
			}
			for _, c := range behind(lines, at) {
				switch meant := meantBy(c.word()); {
				case meant != c.word():
					misspelled(c, meant, out)
				case below != at.Line:
					out.Add(c.Pos, "put it on a separate line above the key", "the comment `%s` checks nothing, because its line does not begin with a key", c.word())
					below = at.Line
				}
			}
		}
		misplaced(lines, value, below, out)
	}
}

func misspelled(c comment, meant string, out *model.Problems) {
	out.Add(c.Pos, "did you mean `"+meant+"`?", "the comment `%s` checks nothing", c.word())
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

// CommentsBehind returns the comments that check a value behind its key, which begins its line.
func CommentsBehind(lines [][]byte, key model.Position) []comment {
	if !begins(lines, key) {
		return nil
	}

	return behind(lines, key)
}

// behind returns the comments on a line that are meant to check something.
func behind(lines [][]byte, at model.Position) []comment {
	i := at.Line - 1
	if i < 0 || i >= len(lines) {
		return nil
	}
	from := commentIn(lines[i])
	if from < 0 {
		return nil
	}
	var out []comment
	found := trailing.FindAllSubmatchIndex(lines[i][from:], -1)
	for n, match := range found {
		end := len(lines[i])
		if n+1 < len(found) {
			end = from + found[n+1][0]
		}
		if meantBy(string(lines[i][from+match[2]:from+match[3]])) == "" {
			continue
		}
		pos := document.PositionAt(at.File, lines[i], from+match[0]+1)
		pos.Line = at.Line
		out = append(out, comment{string(bytes.TrimSpace(lines[i][from+match[2] : end])), pos})
	}

	return out
}

// commentIn returns where the space before the comment of a line is, -1 for none. The line
// begins outside of a quoted text.
func commentIn(line []byte) int {
	var quote byte
	starts := true // whether a quote would open a text here
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote, starts = 0, false
			}
		case starts && (c == '"' || c == '\''):
			quote = c
		case c == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t'):
			return i - 1
		default:
			starts = bytes.IndexByte([]byte(" \t[{,:"), c) >= 0
		}
	}

	return -1
}

// meantBy returns the check that a word is or is likely meant to be, empty for
// the words of ordinary comments.
func meantBy(word string) string {
	if !strings.HasPrefix(word, "@") {
		return ""
	}

	return document.Nearest(strings.ToLower(strings.TrimRight(word, ":,.")), []string{AnnotationRequire, AnnotationValidate, annotationRequired})
}
