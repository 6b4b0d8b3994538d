package page

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Visible makes the control and bidirectional characters of a page visible, except line ends and tabs, because nodes
// could reorder the text around them. It replaces invalid UTF-8.
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

// The limits of bytes of a text in a row, and of a separate text.
const (
	MaxRow  = 400
	MaxText = 16 << 10
)

// Row returns the first line of a text for a row of a list. A long line is cut.
func Row(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(more) != "" {
		line += " …"
	}

	return Cut(line, MaxRow)
}

// Whole returns a separate text. A very long text is cut.
func Whole(text string) string { return Cut(text, MaxText) }

// Cut returns the first characters of a text, and the number of the others.
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

// Bytes returns a size for users.
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

// Age returns the age of a time: <1m, 5m, 3h05m, 4d. app.js uses the same form.
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

// Ago returns the age of a time for a sentence.
func Ago(t, now time.Time) string {
	if now.Sub(t) < time.Minute {
		return "just now"
	}

	return Age(t, now) + " ago"
}

// UTC returns a time in full.
func UTC(t time.Time) string { return t.UTC().Format(model.TimeFormat) }

// Duration returns a duration for users.
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

// whole returns a duration in whole seconds, without trailing zeros: 5m, 1h.
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

// Digest returns the beginning of a digest.
func Digest(text string) string {
	text = strings.TrimPrefix(text, model.DigestPrefix)

	return text[:min(12, len(text))]
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}

	return several
}

// first returns the first texts, and the number of the others.
func first(all []string, most int) []string {
	if len(all) <= most {
		return all
	}

	return append(slices.Clone(all[:most]), "+"+Number(len(all)-most))
}

func pairs(labels map[string]string, most int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, Row(name+"="+labels[name]))
	}

	return first(out, most)
}

func nowOn(r view.TopResource) string {
	switch {
	case r.Now == 0:
		return "none known now"
	case r.AtLeast:
		return "now on at least " + Count(r.Now, "node")
	default:
		return "now on " + Count(r.Now, "node")
	}
}

func runText(r view.RunRow) string {
	switch {
	case r.Error != "":
		return Row(messageFirst(r.Error))
	case r.Outcome == "":
		return "its summary has not arrived"
	default:
		return r.Counts.Text()
	}
}

// errorPosition matches the manifest position at the start of an error: a key, a line and a column.
var errorPosition = regexp.MustCompile(`^([^\s:]+:\d+(?::\d+)?): (\S.*)$`)

// messageFirst moves the position at the start of an error to the end of its first line.
func messageFirst(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	m := errorPosition.FindStringSubmatch(line)
	if m == nil {
		return text
	}
	line = m[2] + " (at " + m[1] + ")"
	if rest == "" {
		return line
	}

	return line + "\n" + rest
}

// eventID returns a unique id of an event in a document.
func eventID(e view.Event) string {
	return strconv.FormatUint(e.Seq, 10) + "-" + Cut(e.ID, 40)
}

// eventLink returns a link to the details of an event, the zero value for none. An answer to a request has a run id,
// but no page of a run.
func eventLink(e view.Event) Link {
	switch {
	case e.Kind == model.KindEnsure && e.CorrelationID != "":
		return Link{Text: "request", URL: requestURL(e.CorrelationID, e.Cause == model.CauseRequest)}
	case e.Kind != model.KindEnsure && e.RunID != "" && e.Node != "":
		return Link{Text: "run", URL: runURL(e.Node, e.RunID)}
	default:
		return Link{}
	}
}

func eventWord(e view.Event) string {
	word := ofOutcome(e.Outcome).word
	switch e.Kind {
	case model.KindRun:
		return "Run: " + word
	case model.KindHealth:
		return "Health check: " + word
	case model.KindEnsure:
		return "Request: " + word
	case model.KindNode:
		return "Agent: " + word
	case model.KindTransaction:
		return word + ":"
	default:
		return Row(e.Kind) + ": " + word
	}
}

func pageText(from, shown, all int) string {
	if shown == 0 {
		return "none of " + Number(all)
	}

	return Number(from+1) + "–" + Number(from+shown) + " of " + Number(all)
}

func reasonOf(reason, none string) string { return Row(cmp.Or(reason, none)) }

func matchText(d NodesData) string {
	if !d.filtered() {
		return Count(d.Page.Known, "node")
	}

	return Number(d.Page.Matching) + " of " + Count(d.Page.Known, "node")
}

func placeOf(e *targets.Error) string {
	text := "at column " + strconv.Itoa(e.Column)
	if e.Line > 1 {
		text = "at line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column)
	}

	return text
}

func comma(i, of int) string {
	if i < of-1 {
		return ", "
	}

	return ""
}

// runName returns the name of a run in a list. It is never empty.
func runName(r view.RunRow, withNode bool) string {
	if withNode {
		return r.Node
	}

	return cmp.Or(nameOf(r.Manifest), "unnamed")
}

func runSub(r view.RunRow) string {
	return "revision " + RevisionText(r.Revision) + ", " + cmp.Or(whyRan(r.Cause, r.Retry), "cause unknown")
}

// sharedLabels describes the annotations that Prometheus does not receive, because they share a label with another one.
func sharedLabels(r registration.Registration) []string {
	var out []string
	for _, keys := range r.AnnotationsByLabel() {
		if len(keys) > 1 {
			out = append(out, "of "+strings.Join(keys, ", ")+" Prometheus gets "+keys[0]+" only")
		}
	}
	slices.Sort(out)

	return out
}
