package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// Visible makes the control and bidirectional characters of a page visible, except line ends and
// tabs: nodes wrote them, and they would reorder what is around them. What is no UTF-8 is
// replaced.
func Visible(html string) string {
	html = strings.ToValidUTF8(html, "\ufffd")
	if strings.IndexFunc(html, isUnsafe) < 0 {
		return html
	}
	var out strings.Builder
	for _, r := range html {
		if isUnsafe(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}

	return out.String()
}

func isUnsafe(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// How many bytes are shown of a text: in a row of a list, and where it is shown by itself.
const (
	MaxRow  = 400
	MaxText = 16 << 10
)

// Row returns a text for a row of a list: its first line, cut where it is long.
func Row(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(more) != "" {
		line += " …"
	}

	return Cut(line, MaxRow)
}

// Whole returns a text that is shown by itself, cut where it is very long.
func Whole(text string) string { return Cut(text, MaxText) }

// Cut returns the first characters of a text, and how many more there are.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return fmt.Sprintf("%s… (%s more)", text[:end], Bytes(len(text)-end))
}

// Bytes returns a size in a unit for people.
func Bytes(n int) string {
	switch {
	case n < 10_000:
		return Count(n, "byte")
	case n < 10_000_000:
		return Number(n/1000) + " kB"
	default:
		return Number(n/1_000_000) + " MB"
	}
}

// Number returns a number with separators between its thousands.
func Number(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}

	return digits
}

// Count returns a number with its noun: 1 node, 2 nodes.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, is := strings.CutSuffix(noun, "ry"); is {
		return Number(n) + " " + stem + "ries"
	}

	return Number(n) + " " + noun + "s"
}

// Age returns how long ago a time was: <1m, 5m, 3h05m, 4d. app.js writes the same form.
func Age(t, now time.Time) string {
	switch d := max(now.Sub(t), 0); {
	case d < time.Minute:
		return "<1m"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// Ago returns the age of a time in a sentence.
func Ago(t, now time.Time) string {
	if now.Sub(t) < time.Minute {
		return "just now"
	}

	return Age(t, now) + " ago"
}

// UTC returns a time in full.
func UTC(t time.Time) string { return t.UTC().Format(model.TimeFormat) }

// Duration returns how long something took, for people.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < 10*time.Second:
		return model.ShortDuration(d)
	default:
		return whole(d)
	}
}

// whole returns a duration in whole seconds, without the zeros at its end: 5m, 1h.
func whole(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}

	return text
}

// RevisionText returns the number of a revision, a dash for none.
func RevisionText(n uint64) string {
	if n == 0 {
		return "–"
	}

	return strconv.FormatUint(n, 10)
}

// Digest returns enough of a digest to tell it from others.
func Digest(text string) string {
	text = strings.TrimPrefix(text, model.DigestPrefix)

	return text[:min(12, len(text))]
}

// IsAre returns the verb for a number of things.
func IsAre(n int) string {
	if n == 1 {
		return "is"
	}

	return "are"
}
