package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
)

// concern is a problem of a fleet.
type concern struct {
	look
	what, why string
	url       templ.SafeURL
	// nodes are the first affected nodes, all is their number.
	nodes []string
	all   int
	// since is the time since which the first node is affected, zero if unknown.
	since time.Time
}

// maxConcerns is the maximum number of concerns of a kind. The linked pages show all.
const maxConcerns = 5

// concernsOf returns the concerns, the most serious first.
func concernsOf(o view.Overview) []concern {
	var out []concern
	out = append(out, failures(o.Failing, fleet.StatusFailed)...)
	out = append(out, failures(o.Failing, fleet.StatusRejected)...)
	out = append(out, pending(o.Manifests)...)
	for _, s := range o.States {
		if s.State == fleet.StatusUnreachable || s.State == fleet.StatusUnreadable {
			out = append(out, concern{look: ofStatus(s.State), what: Count(s.Nodes, "node") + " " + plural(s.Nodes, "is", "are") + " " + string(s.State), why: whyAbsent(s.State, s.Nodes), url: stateURL(s.State), nodes: s.First, all: s.Nodes, since: s.Since})
		}
	}
	if len(o.Lost) > 0 {
		out = append(out, lost(o.Summary))
	}
	if n := len(o.Messages); n > 0 {
		m := o.Messages[0]
		out = append(out, concern{look: look{"warning", "wait", "Message"}, what: Count(n, "node") + plural(n, " says that something is wrong with it", " say that something is wrong with them"), why: m.Node + ": " + Row(m.Message), url: NodeURL(m.Node), nodes: nodesOf(o.Messages, func(m view.Message) string { return m.Node }), all: n})
	}
	for _, f := range o.Flapping[:min(len(o.Flapping), maxConcerns)] {
		out = append(out, concern{look: look{"wave", "wait", "Flapping"}, what: Row(f.Resource) + " flaps", why: "of " + Row(f.Manifest) + ", " + Row(f.By), url: manifestURL(f.Manifest), nodes: f.First, all: f.Nodes})
	}
	if n := len(o.Clocks); n > 0 {
		c := o.Clocks[0]
		out = append(out, concern{look: look{"audit", "wait", "Clock"}, what: Count(n, "clock") + plural(n, " differs", " differ"), why: "furthest off: " + c.Node + ", " + c.ClockOffset.String(), url: NodeURL(c.Node), nodes: nodesOf(o.Clocks, func(c view.Clock) string { return c.Node }), all: n})
	}
	if n := len(o.Outboxes); n > 0 {
		b := o.Outboxes[0]
		out = append(out, concern{look: look{"outbox", "wait", "Outbox"}, what: "Reports wait on " + Count(n, "node"), why: "most of them, " + Number(b.Reports) + ", on " + b.Node, url: NodeURL(b.Node), nodes: nodesOf(o.Outboxes, func(b view.Outbox) string { return b.Node }), all: n})
	}

	return out
}

func lost(s view.Summary) concern {
	var keys []string
	for _, l := range s.Lost[:min(len(s.Lost), maxConcerns)] {
		keys = append(keys, Row(l.Key)+" still runs on "+Count(l.Nodes, "node"))
	}
	if more := len(s.Lost) - maxConcerns; more > 0 {
		keys = append(keys, "and "+Count(more, "more manifest"))
	}
	first := s.Lost[0]

	return concern{look: look{"warning", "wait", "Lost key"}, what: s.LostTitle(), why: strings.Join(keys, ", ") + "; " + s.LostRemedy("muster fleet rm KEY"), url: manifestURL(first.Key), nodes: first.First, all: first.Nodes}
}

func failures(all []view.Failure, status fleet.Status) []concern {
	var out []concern
	more, nodes := 0, 0
	for _, f := range all {
		if f.Status != status {
			continue
		}
		if len(out) == maxConcerns {
			more, nodes = more+1, nodes+f.Nodes
			continue
		}
		out = append(out, concern{look: ofStatus(status), what: Row(f.Manifest) + " " + strings.ToLower(ofStatus(status).word) + " on " + Count(f.Nodes, "node"), why: Row(messageFirst(f.Error)) + f.Differs(), url: manifestStatusURL(f.Manifest, status), nodes: f.First, all: f.Nodes, since: f.Since})
	}
	if more > 0 {
		out = append(out, concern{look: ofStatus(status), what: Count(more, "more error"), why: "on " + Count(nodes, "node") + " at most, which may be among those above", url: stateURL(status)})
	}

	return out
}

// pending returns the manifests that are pending on nodes, each with its oldest node.
func pending(all []view.Manifest) []concern {
	var out []concern
	for _, m := range all {
		if m.Oldest == nil || len(out) == maxConcerns {
			continue
		}
		out = append(out, concern{
			look: ofStatus(fleet.StatusPending), what: Row(m.Name) + " pending on " + Count(m.Pending, "node"), why: "longest on " + m.Oldest.Node + ": " + Row(m.Oldest.Reason),
			url: manifestStatusURL(m.Name, fleet.StatusPending), nodes: []string{m.Oldest.Node}, all: m.Pending, since: m.Oldest.Since,
		})
	}

	return out
}

func whyAbsent(s fleet.Status, n int) string {
	if s == fleet.StatusUnreadable {
		return "what " + plural(n, "it reports", "they report") + " cannot be read by this version of muster"
	}

	return "not seen lately; " + plural(n, "is its agent", "are their agents") + " running, and connected to NATS?"
}

func nodesOf[T any](all []T, name func(T) string) []string {
	var out []string
	for _, v := range all[:min(len(all), 10)] {
		out = append(out, name(v))
	}

	return out
}

func okOf(states []view.State) int {
	if i := slices.IndexFunc(states, func(s view.State) bool { return s.State == fleet.StatusOK }); i >= 0 {
		return states[i].Nodes
	}

	return 0
}

func ofStates(states []view.State) []share {
	var out []share
	for _, s := range states {
		out = append(out, share{ofStatus(s.State), s.Nodes})
	}

	return out
}

// unread describes the data that is still being read.
func unread(p view.Progress) []string {
	switch {
	case !p.Nodes:
		return []string{"The nodes are still being read: counts and lists are incomplete."}
	case !p.LastRuns:
		return []string{"The last runs are still being read: some nodes do not show theirs yet."}
	case !p.History:
		return []string{"The history is still being read: charts and lists of events are incomplete."}
	default:
		return nil
	}
}

// isPartial reports whether the overview shows a notice that the states may be incomplete or outdated.
func isPartial(o view.Overview) bool {
	return len(unread(o.Progress)) > 0 || len(o.Progress.Problems) > 0 || !o.Progress.BlindSince.IsZero() || len(o.Incomplete) > 0
}

// The size of charts in their own units; the browser stretches them.
const (
	chartWidth, chartHeight = 960.0, 100.0
	maxBars                 = 96
)

type rect struct{ x, y, width, height, tone string }

// column is the part of a chart for one interval.
type column struct {
	at    time.Time
	title string
	parts []rect
}

type chart struct {
	columns []column
	// top is the value at the upper end.
	top                             int
	runs, changed, failed, repaired int
	// first is the begin of the first interval, until the end of the last one.
	first, until time.Time
	points       []view.Point
}

// Last is the time range of a chart: a duration up to now, empty for the whole history.
type Last string

func lasts() []Last { return []Last{"1h", "6h", "24h", ""} }

func (l Last) word() string {
	if l == "" {
		return "All"
	}

	return string(l)
}

// of returns the points in the range. An invalid range selects all points.
func (l Last) of(all []view.Point, now time.Time) []view.Point {
	d, err := time.ParseDuration(string(l))
	if err != nil || d <= 0 {
		return all
	}
	for i, p := range all {
		if p.At.After(now.Add(-d)) {
			return all[i:]
		}
	}

	return nil
}

func newChart(history []view.Point) chart {
	c := chart{points: merged(history, maxBars), top: 1}
	for _, p := range c.points {
		c.runs, c.changed, c.failed, c.repaired = c.runs+p.Runs, c.changed+p.Changed, c.failed+p.Failed, c.repaired+p.Repaired
		c.top = max(c.top, p.Changed+p.Failed+p.Repaired)
	}
	c.top = roundUp(c.top)
	for i, p := range c.points {
		c.columns = append(c.columns, c.column(i, p))
	}
	if len(c.points) > 0 {
		c.first, c.until = c.points[0].At, history[len(history)-1].At
		if n := len(history); n > 1 {
			c.until = c.until.Add(history[n-1].At.Sub(history[n-2].At))
		}
	}

	return c
}

// end returns the end of the last interval, at most now.
func (c chart) end(now time.Time) time.Time {
	if c.until.After(now) {
		return now
	}

	return c.until
}

// isLong reports whether the times of the chart need a day. A chart of 24 hours ends now, before the end of its last
// interval, so it is shorter than 24 hours.
func (c chart) isLong(now time.Time) bool { return c.end(now).Sub(c.first) > 12*time.Hour }

func (c chart) column(i int, p view.Point) column {
	width := chartWidth / float64(len(c.points))
	out := column{at: p.At, title: fmt.Sprintf("%s: %s, %d changed, %d repaired, %d failed", UTC(p.At), Count(p.Runs, "run"), p.Changed, p.Repaired, p.Failed)}
	y := chartHeight
	for _, part := range []struct {
		count int
		tone  string
	}{{p.Failed, "bad"}, {p.Repaired, "repaired"}, {p.Changed, "changed"}} {
		if part.count == 0 {
			continue
		}
		height := max(chartHeight*float64(part.count)/float64(c.top), 1.5)
		y -= height
		out.parts = append(out.parts, rect{units(float64(i)*width + width*0.12), units(y), units(width * 0.76), units(height), part.tone})
	}

	return out
}

// merged returns at most most points, each the sum of consecutive points.
func merged(points []view.Point, most int) []view.Point {
	each := (len(points) + most - 1) / most
	if each <= 1 {
		return points
	}
	var out []view.Point
	for i, p := range points {
		if i%each == 0 {
			out = append(out, p)
			continue
		}
		last := &out[len(out)-1]
		last.Runs, last.Changed, last.Failed, last.Repaired = last.Runs+p.Runs, last.Changed+p.Changed, last.Failed+p.Failed, last.Repaired+p.Repaired
	}

	return out
}

// roundUp returns the next round number: 1, 2, 4, 6, 8, 10, 20, 40 …
func roundUp(n int) int {
	unit := 1
	for unit*10 < n {
		unit *= 10
	}
	for _, step := range []int{1, 2, 4, 6, 8, 10} {
		if step*unit >= n {
			return step * unit
		}
	}

	return n
}

func bar(parts []share) []rect {
	total := 0
	for _, p := range parts {
		total += p.count
	}
	var out []rect
	x, last := 0.0, 0.0
	for _, p := range parts {
		if p.count == 0 {
			continue
		}
		width := max(chartWidth*float64(p.count)/float64(total), 8)
		width = min(width, chartWidth-x)
		out = append(out, rect{units(x), "0", units(max(width-3, 3)), "10", p.tone})
		last = x
		x += width
	}
	if len(out) > 0 { // behind the last part there is no gap
		out[len(out)-1].width = units(chartWidth - last)
	}

	return out
}

func barText(parts []share) string {
	var words []string
	for _, p := range parts {
		if p.count > 0 {
			words = append(words, Number(p.count)+" "+strings.ToLower(p.word))
		}
	}
	if words == nil {
		return "no nodes"
	}

	return strings.Join(words, ", ")
}

func units(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
