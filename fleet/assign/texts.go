package assign

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// How long a text may be that is shown, and all of a bundle together.
const (
	maxText  = 1 << 20
	maxTexts = 8 << 20
)

// Why texts are left out.
const (
	notText = "not a text"
	tooLong = "longer than 1 MiB"
	tooMuch = "behind 8 MiB of other texts"
)

// text is a text, or why it is left out.
type text struct{ text, omitted string }

// texts keeps the texts among the files of a bundle, which come one by one.
type texts struct {
	kept  map[string]text
	bytes int
	// name and now are the file that is read.
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

// Write keeps a part of the file, unless it is left out.
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
