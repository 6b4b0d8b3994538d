package assign

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Limits of the shown texts: of one text and of a bundle.
const (
	maxText  = 1 << 20
	maxTexts = 8 << 20
)

// Reasons for omitted texts.
const (
	notText = "not a text"
	tooLong = "longer than 1 MiB"
	tooMuch = "behind 8 MiB of other texts"
)

// text is a text, or the reason why it is omitted.
type text struct{ text, omitted string }

// texts collects the texts of a bundle's files, one file at a time.
type texts struct {
	kept  map[string]text
	bytes int
	// name and now are the current file.
	name    string
	now     strings.Builder
	omitted string
}

// open begins a file.
func (t *texts) open(name string) io.Writer {
	t.end()
	t.name = name

	return t
}

// Write adds a part of the file, unless its text is omitted.
func (t *texts) Write(b []byte) (int, error) {
	switch {
	case t.omitted != "":
	case bytes.IndexByte(b, 0) >= 0:
		t.omitted = notText
	case t.now.Len()+len(b) > maxText:
		t.omitted = tooLong
	case t.bytes+t.now.Len()+len(b) > maxTexts:
		t.omitted = tooMuch
	default:
		return t.now.Write(b)
	}
	t.now.Reset()

	return len(b), nil
}

// end ends the file.
func (t *texts) end() {
	if t.name == "" {
		return
	}
	if t.kept == nil {
		t.kept = map[string]text{}
	}
	if !utf8.ValidString(t.now.String()) {
		t.omitted = notText
		t.now.Reset()
	}
	t.kept[t.name] = text{t.now.String(), t.omitted}
	t.bytes += t.now.Len()
	t.name, t.omitted = "", ""
	t.now.Reset()
}
