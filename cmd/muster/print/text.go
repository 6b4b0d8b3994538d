package print

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Text makes control characters visible, see model.SafeText.
func Text(s string) string { return model.SafeText(s) }

// ours matches the colours of this package and line ends.
var ours = regexp.MustCompile(`\x1b\[(31|32|33|36|90|0)m|\n`)

// Visible makes control characters visible, except line ends and the colours of this package. All output of
// commands passes through it.
func Visible(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if model.IsSafeText(s) {
		return s
	}
	var b strings.Builder
	end := 0
	for _, at := range ours.FindAllStringIndex(s, -1) {
		b.WriteString(Text(s[end:at[0]]) + s[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(Text(s[end:]))

	return b.String()
}

// Lines makes control characters visible, except line ends. It ends the last line.
func Lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(Text(strings.TrimRight(line, "\r\n")) + "\n")
	}

	return b.String()
}

// OneLine returns a text on one line.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

const (
	// shortTo is the maximum length of Short, in characters.
	shortTo = 120
	// longTo is the maximum length of the last cell of a row.
	longTo = 2000
)

// Cut limits a text to a number of characters, and marks a longer text with an ellipsis.
func Cut(s string, most int) string {
	count := 0
	end := 0
	for i := range s {
		if count == most {
			return s[:end] + "…"
		}
		if count == most-1 {
			end = i
		}
		count++
	}

	return s
}

// Short returns a text on one line, cut where it is long and p prints to a terminal.
func (p Printer) Short(s string) string {
	if !IsTerminal(p.Out) {
		return OneLine(s)
	}

	return Cut(OneLine(s), shortTo)
}

// Time returns a time in the local time zone.
func Time(t time.Time) string { return t.Local().Format(model.TimeFormat) }

// Count returns a number with its noun: "1 node", "2 nodes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// maxNamed is the maximum number of names in Some.
const maxNamed = 10

// Some returns names on one line. Of many names it returns the first, the number of the others, and where to find all.
func Some(names []string, where string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}

	return fmt.Sprintf("%s and %d more (%s)", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed, where)
}

// Age returns how long ago t was.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch d := max(now.Sub(t), 0); {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// ShortDigest returns enough of a digest to distinguish it from others.
func ShortDigest(digest string) string {
	return digest[:min(len(digest), len(model.DigestPrefix)+12)]
}
