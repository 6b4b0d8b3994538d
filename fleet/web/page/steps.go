package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
)

// maxSteps is how many resources of a run are shown.
const maxSteps = 500

// maxTexts is how many bytes of diffs, errors and outputs a page of a run shows.
const maxTexts = 256 << 10

// budget bounds the texts of a page.
type budget struct{ left int }

// take returns as much of a text as there is room for.
func (b *budget) take(text string) string {
	if text == "" {
		return ""
	}
	if b.left <= 0 {
		return "left out: this page has " + texts.Bytes(maxTexts) + " of other texts"
	}
	text = texts.Cut(text, min(b.left, texts.MaxText))
	b.left -= len(text)

	return text
}

// step is what happened to one resource.
type step struct {
	look
	ref, text string
	// open is set where it needs attention.
	open bool
	t    model.Transaction
	// changes, errors and checks are those of the transaction, bounded.
	changes []change
	errors  []string
	checks  []check
}

// change is a change, with the lines of its diff.
type change struct {
	message, property, from, to string
	diff                        []line
}

// check is the result of a health check.
type check struct {
	look
	name, output string
	tries        int
}

// line is a line of a diff or of a source.
type line struct{ class, text string }

// stepsOf returns what happened to the resources of a run, in their order.
func stepsOf(transactions []model.Transaction) []step {
	b := &budget{maxTexts}
	// What failed has its texts also where what went before it would fill the page.
	out := make([]step, len(transactions))
	for _, failed := range []bool{true, false} {
		for i, t := range transactions {
			if t.OK() != failed {
				out[i] = newStep(t, b)
			}
		}
	}

	return out
}

func newStep(t model.Transaction, b *budget) step {
	s := step{look: ofOutcome(t.Outcome()), ref: texts.Row(t.Ref().String()), text: texts.Row(view.DescribeAnswer(model.EnsureResponse{State: &t})), open: !t.OK(), t: t}
	for _, e := range t.Errors[:min(len(t.Errors), 50)] {
		s.errors = append(s.errors, b.take(e))
	}
	for _, c := range t.Changes[:min(len(t.Changes), 200)] {
		s.changes = append(s.changes, change{message: texts.Row(cmp.Or(c.Message, c.Action)), property: texts.Row(c.Property), from: shortDigest(texts.Row(c.From)), to: shortDigest(texts.Row(c.To)), diff: diffLines(b.take(c.Diff))})
	}
	for _, h := range t.HealthCheck[:min(len(t.HealthCheck), 50)] {
		s.checks = append(s.checks, check{ofEvent(string(h.Status)), texts.Row(h.Name), b.take(h.Output), h.Tries})
	}

	return s
}

// shortDigest returns the beginning of a digest, by which people compare it; any other text as it is.
func shortDigest(text string) string {
	if digest, is := strings.CutPrefix(text, digestWord); is && len(digest) == 64 {
		return digestWord + digest[:12]
	}

	return text
}

// digestWord begins the text of a digest.
const digestWord = "sha256 "

// detailed reports whether there is more to show than the line of the resource.
func (s step) detailed() bool {
	return len(s.changes) > 0 || len(s.errors) > 0 || len(s.checks) > 0 || s.t.Source.Line > 0 || len(s.t.UnmetRequirements) > 0 || s.t.Drift != nil
}

// diffLines returns the lines of a unified diff by what they are.
func diffLines(diff string) []line {
	var out []line
	for text := range strings.Lines(diff) {
		l := line{text: strings.TrimRight(text, "\r\n")}
		switch {
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"), strings.HasPrefix(text, "@@"), strings.HasPrefix(text, "\\"):
			l.class = "hunk"
		case strings.HasPrefix(text, "+"):
			l.class = "add"
		case strings.HasPrefix(text, "-"):
			l.class = "del"
		}
		out = append(out, l)
	}

	return out
}

// around returns the lines of a source around one, with their numbers; none where it has no such line.
func around(source []string, at int) []line {
	if at < 1 || at > len(source) {
		return nil
	}
	var out []line
	for i := max(at-2, 1); i <= min(at+2, len(source)); i++ {
		l := line{text: fmt.Sprintf("%4d  %s", i, texts.Cut(source[i-1], texts.MaxRow))}
		if i == at {
			l.class = "here"
		}
		out = append(out, l)
	}

	return out
}

// Shown are the resources of a run that a page shows.
type Shown string

// What of a run is shown.
const (
	// ShownAll are all resources.
	ShownAll Shown = ""
	// ShownChanged are those that changed, or would have.
	ShownChanged Shown = "changed"
	// ShownFailed are those that are not in their desired state.
	ShownFailed Shown = "failed"
)

// page returns the first of the transactions that are shown.
func (d RunData) page() []model.Transaction {
	all := d.Show.of(d.Detail.Transactions)

	return all[:min(len(all), maxSteps)]
}

// more returns how many of the transactions are not shown.
func (d RunData) more() int {
	return d.Detail.More + max(len(d.Show.of(d.Detail.Transactions))-maxSteps, 0)
}

// in reports whether a transaction is shown.
func (s Shown) in(t model.Transaction) bool {
	switch s {
	case ShownChanged:
		return t.Changed || t.Refreshed
	case ShownFailed:
		return !t.OK()
	default:
		return true
	}
}

// of returns the transactions that are shown.
func (s Shown) of(all []model.Transaction) []model.Transaction {
	return slices.DeleteFunc(slices.Clone(all), func(t model.Transaction) bool { return !s.in(t) })
}

// RunData is what a page of a run shows.
type RunData struct {
	Node, ID string
	Detail   view.RunDetail
	Show     Shown
	// Source are the lines of the manifest, by the file that errors name; nil where nobody has them.
	Source     []string
	SourceFile string
}

// source returns the lines of the manifest around the place of a resource.
func (d RunData) source(p model.Position) []line {
	if p.File != d.SourceFile {
		return nil
	}

	return around(d.Source, p.Line)
}

// outcome returns that of the run, empty while it is not known.
func (d RunData) outcome() model.Outcome {
	if d.Detail.Run == nil {
		return ""
	}

	return d.Detail.Run.Outcome()
}

// shownCount is a filter of the resources of a run.
type shownCount struct {
	shown Shown
	word  string
	count int
	url   templ.SafeURL
}

// shownCounts returns the filters of the resources.
func (d RunData) shownCounts() []shownCount {
	var out []shownCount
	for _, s := range []shownCount{{shown: ShownAll, word: "All"}, {shown: ShownFailed, word: "Failed"}, {shown: ShownChanged, word: "Changed"}} {
		s.count, s.url = len(s.shown.of(d.Detail.Transactions)), at(values("show", string(s.shown)), "runs", d.Node, d.ID)
		out = append(out, s)
	}

	return out
}

// countsText returns the resources of a run in words.
func countsText(c model.Counts) string { return c.Text() }

// driftText returns how much drift a run found.
func driftText(d model.Drifted) string {
	return fmt.Sprintf("Found drift of %s and repaired %s of it.", texts.Count(d.Detected, "resource"), texts.Number(d.Repaired))
}

// emptyRun returns why a run shows no resources.
func emptyRun(d RunData) string {
	switch {
	case len(d.Detail.Transactions) > 0:
		return "Others are shown without this filter."
	case d.Detail.Run == nil:
		return "None of its reports are known yet."
	case len(d.Detail.Run.Unchanged) > 0:
		return "Its results are the same as an earlier run reported them."
	default:
		return "None of its resources were reported."
	}
}

// resourceFacts returns what else is known of a resource, in a line.
func resourceFacts(t model.Transaction) string {
	words := []string{}
	for _, w := range []struct{ name, value string }{{"provider", t.Provider}, {"alias", t.Alias}, {"desired", t.RequestedEnsure}, {"final", t.FinalEnsure}} {
		if w.value != "" {
			words = append(words, w.name+" "+texts.Row(w.value))
		}
	}

	return strings.Join(words, " · ")
}

// orNone returns a value, or a word where it is empty.
func orNone(value string) string { return cmp.Or(value, "(none)") }
