package page

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// first returns the first of some texts, and how many more there are.
func first(all []string, most int) []string {
	if len(all) <= most {
		return all
	}

	return append(slices.Clone(all[:most]), "+"+texts.Number(len(all)-most))
}

// pairs returns labels as they are written, the first by name.
func pairs(labels map[string]string, most int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, texts.Row(name+"="+labels[name]))
	}

	return first(out, most)
}

// nowOn returns on how many nodes a resource fails now.
func nowOn(r view.TopResource) string {
	switch {
	case r.Now == 0:
		return "none known now"
	case r.AtLeast:
		return "now on at least " + texts.Count(r.Now, "node")
	default:
		return "now on " + texts.Count(r.Now, "node")
	}
}

// runText returns what a run did in a few words.
func runText(r view.RunRow) string {
	switch {
	case r.Error != "":
		return texts.Row(messageFirst(r.Error))
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

// eventID returns what distinguishes an event from others in a document.
func eventID(e view.Event) string {
	return strconv.FormatUint(e.Seq, 10) + "-" + texts.Cut(e.ID, 40)
}

// eventLink returns a link to the details of an event, the zero value if there are none. An answer to a request has
// a run id, but no page of a run.
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

// eventWord returns what an event is about.
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
		return texts.Row(e.Kind) + ": " + word
	}
}

// pageText returns which part of a list a page shows.
func pageText(from, shown, all int) string {
	if shown == 0 {
		return "none of " + texts.Number(all)
	}
	return texts.Number(from+1) + "–" + texts.Number(from+shown) + " of " + texts.Number(all)
}

// reasonOf returns why a node is not in order; a pending one always has a reason.
func reasonOf(reason, none string) string { return texts.Row(cmp.Or(reason, none)) }

// matchText returns how many nodes a query selects.
func matchText(d NodesData) string {
	if !d.filtered() {
		return texts.Count(d.Page.Known, "node")
	}

	return texts.Number(d.Page.Matching) + " of " + texts.Count(d.Page.Known, "node")
}

// placeOf returns where an expression is wrong.
func placeOf(e *targets.Error) string {
	text := "at column " + strconv.Itoa(e.Column)
	if e.Line > 1 {
		text = "at line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column)
	}

	return text
}

// comma returns what follows one of some names in a line.
func comma(i, of int) string {
	if i < of-1 {
		return ", "
	}

	return ""
}

// runName is what a run is listed by, never empty: a link has a name.
func runName(r view.RunRow, withNode bool) string {
	if withNode {
		return r.Node
	}

	return cmp.Or(nameOf(r.Manifest), "unnamed")
}

// runSub returns which revision ran, and why.
func runSub(r view.RunRow) string {
	return "revision " + texts.Revision(r.Revision) + ", " + cmp.Or(whyRan(r.Cause, r.Retry), "cause unknown")
}

// sharedLabels says which annotations of a registration Prometheus does not get: they share a label with another one.
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
