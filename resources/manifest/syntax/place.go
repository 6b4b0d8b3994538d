package syntax

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
	i, ok := d.offset(at)
	if !ok {
		return at
	}
	for skip := openers(text, offset); i+1 < len(d.text); i++ {
		if d.text[i+1] != '{' || d.text[i] != '$' && d.text[i] != '{' {
			continue
		}
		if skip == 0 {
			return document.PositionAt(d.name, d.text, i)
		}
		skip--
	}

	return at
}

// offset returns the byte offset of a place.
func (d *Document) offset(at model.Position) (int, bool) {
	start := 0
	for line := 1; line < at.Line; line++ {
		next := bytes.IndexByte(d.text[start:], '\n')
		if next < 0 {
			return 0, false
		}
		start += next + 1
	}
	for column := 1; column < at.Column; column++ {
		_, size := utf8.DecodeRune(d.text[start:])
		start += size
	}

	return start, start < len(d.text)
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
