package manifest

import (
	"bytes"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Place returns where the expression at an offset of a text is in the
// document. YAML folds, indents and escapes texts, so it is found by counting:
// it is as many openers behind the beginning of the raw text as behind that of
// the value. at is where the text begins.
func (d *Document) Place(at model.Position, text string, offset int) model.Position {
	if at.File != d.name || at.Line == 0 {
		return at
	}
	line, ok := d.line(at.Line)
	if !ok {
		return at
	}
	i := line
	for column := 1; column < at.Column; column++ {
		_, size := utf8.DecodeRune(d.text[i:])
		i += size
	}
	for skip := openers(text, offset); i+1 < len(d.text); i++ {
		if d.text[i+1] != '{' || d.text[i] != '$' && d.text[i] != '{' {
			continue
		}
		if skip == 0 {
			pos := document.PositionAt(d.name, d.text[line:], i-line)
			pos.Line += at.Line - 1
			return pos
		}
		skip--
	}

	return at
}

// line returns the byte offset of a line, which counts from 1.
func (d *Document) line(n int) (int, bool) {
	starts := d.lines()
	if n > len(starts) {
		return 0, false
	}

	return starts[n-1], true
}

// startsOfLines returns the offsets at which lines begin.
func startsOfLines(text []byte) []int {
	var out []int
	at := 0
	for line := range bytes.Lines(text) {
		out = append(out, at)
		at += len(line)
	}

	return out
}

// openers counts where `${` and `{{` begin before an offset, which is how an
// expression is found again in the raw text of the document.
func openers(s string, before int) int {
	n := 0
	for i := 0; i < before && i+1 < len(s); i++ {
		if s[i+1] == '{' && (s[i] == '$' || s[i] == '{') {
			n++
		}
	}

	return n
}
