package resource

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/resources/host/files"
)

// The limits of a diff, which is part of a report.
const (
	maxDiffText  = 64 << 10
	maxDiffLines = 200
	maxDiffBytes = 32 << 10
)

// Snippet is content for a diff, up to a size.
type Snippet struct {
	Text string
	// TooLarge means that the text was left out because of its size.
	TooLarge bool
}

// SnippetOf returns the snippet of a text.
func SnippetOf(text string) Snippet {
	if len(text) > maxDiffText {
		return Snippet{TooLarge: true}
	}

	return Snippet{Text: text}
}

// ReadSnippet returns the snippet of a file. A file that cannot be read counts as too large, because
// a missing diff is no reason to fail.
func ReadSnippet(entry files.Entry) Snippet {
	text, err := entry.Read(maxDiffText)
	if err != nil {
		return Snippet{TooLarge: true}
	}

	return Snippet{Text: string(text)}
}

// DiffContent is one side of a diff.
type DiffContent struct {
	Snippet
	Size int64
	// Digest is the hex SHA-256.
	Digest string
	// Absent means that there is no file, Unreadable that the file cannot be read. Others means that the other
	// lines of the file are not managed, so the diff does not show them.
	Absent, Unreadable, Others bool
}

// Diff returns the change of a file as a bounded unified diff, or a summary if a diff is impossible.
func Diff(path string, before, after DiffContent) string {
	switch {
	case before.Unreadable:
		return summary("unreadable", before, after)
	case before.TooLarge || after.TooLarge:
		return summary("too large for a diff", before, after)
	case !isText(before.Text) || !isText(after.Text):
		return summary("binary", before, after)
	}
	old := path
	if before.Absent {
		old = "/dev/null"
	}
	edits := []udiff.Edit{{New: after.Text}}
	if before.Text != "" {
		edits = udiff.Lines(before.Text, after.Text)
	}
	context := udiff.DefaultContextLines
	if before.Others {
		context = 0
	}
	text, err := udiff.ToUnified(old, path, before.Text, edits, context)
	if err != nil {
		return summary("no diff", before, after)
	}

	return bound(visible(text))
}

// summary returns the sizes and digests of contents that are not shown.
func summary(what string, before, after DiffContent) string {
	if before.Absent {
		return fmt.Sprintf("%s, %s, %s", what, FormatSize(after.Size), DigestWord(after.Digest))
	}
	size := FormatSize(after.Size)
	if old := FormatSize(before.Size); old != size {
		size = old + " -> " + size
	}
	found := DigestWord(before.Digest)
	if before.Unreadable {
		found = "unreadable"
	}

	return fmt.Sprintf("%s, %s, %s -> %s", what, size, found, after.Digest)
}

// DigestWord returns the name of a content in changes.
func DigestWord(digest string) string { return "sha256 " + digest }

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// visible escapes invisible characters, such as control characters and special blanks. Line ends become
// visible, and a file cannot send commands to a terminal.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}

	return b.String()
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsPrint(r)
}

// bound cuts a diff at a line end and adds the number of omitted lines.
func bound(text string) string {
	end, lines := 0, 0
	for line := range strings.Lines(text) {
		if lines == maxDiffLines || end+len(line) > maxDiffBytes {
			return text[:end] + fmt.Sprintf("… %d more lines of this diff were left out\n", strings.Count(text[end:], "\n"))
		}
		end, lines = end+len(line), lines+1
	}

	return text
}

// FormatSize returns a number of bytes with a unit: 512 B, 1.2 MB.
func FormatSize(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < 3; i++ {
		value /= unit
	}

	return fmt.Sprintf("%.1f %cB", value, "kMGT"[i])
}
