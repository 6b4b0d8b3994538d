package edits

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The limits of a file that is edited. Each line takes memory, also an empty one.
const (
	maxBytes = 16 << 20
	maxLines = 2 << 20
)

// The errors of texts that are not edited.
var (
	errBinary = errors.New("has a NUL byte: it is no text")
	errUTF16  = errors.New("is UTF-16, and only texts of single bytes and UTF-8 are edited")
	errLines  = fmt.Errorf("has more than %d lines", maxLines)
	errGrown  = fmt.Errorf("would have more than %d MiB", maxBytes>>20)
)

// Text is the content of a file. Edits return another Text.
type Text struct {
	// mark is the byte order mark of UTF-8, or empty. It belongs to no line.
	mark  string
	lines []line
}

// line is a line with its end, as it is in the file.
type line struct {
	raw string
	// number is its number before the run, 0 for an added line.
	number int32
}

const byteOrderMark = "\uFEFF"

// Parse returns a text for edits.
func Parse(content string) (Text, error) {
	rest, marked := strings.CutPrefix(content, byteOrderMark)
	switch {
	case strings.HasPrefix(content, "\xff\xfe"), strings.HasPrefix(content, "\xfe\xff"):
		return Text{}, errUTF16
	case strings.IndexByte(content, 0) >= 0:
		return Text{}, errBinary
	case strings.Count(content, "\n") >= maxLines:
		return Text{}, errLines
	}
	t := Text{lines: make([]line, 0, strings.Count(content, "\n")+1)}
	if marked {
		t.mark = byteOrderMark
	}
	for raw := range strings.Lines(rest) {
		t.lines = append(t.lines, line{raw, int32(len(t.lines) + 1)})
	}

	return t, nil
}

// String returns the content.
func (t Text) String() string {
	size := len(t.mark)
	for _, l := range t.lines {
		size += len(l.raw)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(t.mark)
	for _, l := range t.lines {
		b.WriteString(l.raw)
	}

	return b.String()
}

// split returns the text of a line and its end: \n, \r\n, or nothing for a last line.
func (l line) split() (text, end string) {
	text, ended := strings.CutSuffix(l.raw, "\n")
	if !ended {
		return text, ""
	}
	if dos, is := strings.CutSuffix(text, "\r"); is {
		return dos, "\r\n"
	}

	return text, "\n"
}

// at returns the text of a line.
func (t Text) at(i int) string {
	text, _ := t.lines[i].split()

	return text
}

// endNear returns the end for new lines before line i: the end of a neighbor.
func (t Text) endNear(i int) string {
	for _, at := range []int{i - 1, i, i - 2} {
		if at >= 0 && at < len(t.lines) {
			if _, end := t.lines[at].split(); end != "" {
				return end
			}
		}
	}

	return "\n"
}

// insert adds lines before line i.
func (t Text) insert(i int, texts ...string) Text {
	end := t.endNear(i)
	added := make([]line, len(texts))
	for at, text := range texts {
		added[at].raw = text + end
	}
	lines := make([]line, 0, len(t.lines)+len(added))
	lines = append(append(append(lines, t.lines[:i]...), added...), t.lines[i:]...)
	if i > 0 && !strings.HasSuffix(lines[i-1].raw, "\n") && len(added) > 0 {
		lines[i-1].raw += end
	}

	return Text{t.mark, lines}
}

// copied returns a text with lines that may be changed.
func (t Text) copied() Text { return Text{t.mark, slices.Clone(t.lines)} }

// with returns the line with another text and the same end.
func (l line) with(text string) line {
	_, end := l.split()

	return line{text + end, l.number}
}

// remove removes the lines from i to before end.
func (t Text) remove(i, end int) Text {
	return Text{t.mark, slices.Concat(t.lines[:i], t.lines[end:])}
}

// removeEach removes lines, in ascending order.
func (t Text) removeEach(lines []int) Text {
	out := make([]line, 0, len(t.lines))
	for i, l := range t.lines {
		if len(lines) > 0 && lines[0] == i {
			lines = lines[1:]
			continue
		}
		out = append(out, l)
	}

	return Text{t.mark, out}
}

// where returns the words for a new line before line i, by the numbers before the run: " after line 12". They
// are empty in a text without old lines.
func (t Text) where(i int) string {
	for at := i - 1; at >= 0; at-- {
		if n := t.lines[at].number; n > 0 {
			return fmt.Sprintf(" after line %d", n)
		}
	}
	for _, l := range t.lines[i:] {
		if l.number > 0 {
			return fmt.Sprintf(" before line %d", l.number)
		}
	}

	return ""
}

// maxNumbers is the maximum number of lines that a message names.
const maxNumbers = 10

// name returns the words for lines by their numbers before the run: "line 3", "lines 3 and 9".
func (t Text) name(lines []int) string {
	var numbers []string
	for _, i := range lines {
		if n := t.lines[i].number; n > 0 {
			numbers = append(numbers, strconv.Itoa(int(n)))
		}
	}
	switch added := len(lines) - len(numbers); {
	case len(numbers) == 0 && added == 1:
		return "an added line"
	case len(numbers) == 0:
		return fmt.Sprintf("%d added lines", added)
	case len(lines) == 1:
		return "line " + numbers[0]
	case added > 0:
		numbers = append(numbers, fmt.Sprintf("%d added", added))
	}
	if more := len(numbers) - maxNumbers; more > 0 {
		numbers = append(numbers[:maxNumbers], fmt.Sprintf("%d more", more))
	}
	last := len(numbers) - 1

	return "lines " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}
