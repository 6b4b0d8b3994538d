package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// PageSize is the number of rows on a page of a list.
const PageSize = 50

// maxListed is the maximum number of lines of a list on another page.
const maxListed = 10

// NodesData is the content of the page of nodes.
type NodesData struct {
	Query view.NodeQuery
	Page  view.NodePage
	// Err is the error of the expression, nil for none.
	Err *targets.Error
	Acts
}

type sortable struct{ key, title, class string }

func nodeColumns() []sortable {
	return []sortable{{"state", "State", ""}, {"name", "Node", ""}, {"", "Manifests", "col-m"}, {"", "Why", "col-m"}, {"", "Groups and labels", "col-l"}, {"since", "For", "right"}, {"heard", "Last seen", "col-l right"}, {"version", "Version", "col-l"}}
}

// sortURL returns the page sorted by a column, in reverse order if it is already sorted by it.
func (d NodesData) sortURL(key string) templ.SafeURL {
	q := d.Query
	q.Descending = d.sorted(key) && !q.Descending
	q.Sort, q.Offset = key, 0

	return NodesURL(q)
}

func (d NodesData) sorted(key string) bool { return cmp.Or(d.Query.Sort, WorstFirst) == key }

// WorstFirst is the default order of nodes.
const WorstFirst = "state"

// order returns the value of aria-sort for a column, empty if it is not sorted.
func (d NodesData) order(key string) string {
	switch {
	case key == "" || !d.sorted(key):
		return ""
	case d.Query.Descending:
		return "descending"
	default:
		return "ascending"
	}
}

func (d NodesData) stateURL(s fleet.Status) templ.SafeURL {
	q := d.Query
	q.State, q.Offset = s, 0

	return NodesURL(q)
}

func (d NodesData) pageURL(offset int) templ.SafeURL {
	q := d.Query
	q.Offset = offset

	return NodesURL(q)
}

// states returns the filters by state, including the chosen state.
func (d NodesData) states() (counts []statusCount, total int) {
	chosen := d.Query.State == ""
	for _, s := range d.Page.States {
		counts = append(counts, statusCount{s.State, s.Nodes})
		total += s.Nodes
		chosen = chosen || s.State == d.Query.State
	}
	if !chosen {
		counts = append(counts, statusCount{d.Query.State, 0})
	}

	return counts, total
}

func (d NodesData) filtered() bool {
	return d.Query.On != "" || d.Query.Search != "" || d.Query.State != ""
}

// marked returns the invalid line of an expression, and a mark below it.
func marked(e *targets.Error) string {
	if e.Line < 1 || e.Column < 1 {
		return ""
	}
	lines := strings.Split(e.Expression, "\n")
	if e.Line > len(lines) || e.Column > 200 {
		return ""
	}

	return Cut(lines[e.Line-1], MaxRow) + "\n" + strings.Repeat(" ", e.Column-1) + "^"
}

func labelsText(r view.NodeRow) string {
	return Row(strings.Join(append(slices.Clone(r.Groups[:min(len(r.Groups), maxListed)]), pairs(r.Labels, maxListed)...), " "))
}

// tagsWidth is the number of characters that fit into a cell with tags. Each tag needs tagMargin more.
const tagsWidth, tagMargin = 14, 2

// fitting returns the groups and labels of a node that fit into a cell, at least one of them. The last tag counts the
// others, such as "+3".
func fitting(groups []string, labels map[string]string) (shownGroups, shownLabels []string) {
	pairs := pairs(labels, len(labels))
	all, left, count := append(slices.Clone(groups), pairs...), tagsWidth, 0
	for i, text := range all {
		left -= utf8.RuneCountInString(text) + tagMargin
		if i > 0 && left < 0 {
			break
		}
		count++
	}
	if more := len(all) - count; more > 0 {
		pairs = append(pairs[:max(count-len(groups), 0)], "+"+Number(more))
	}

	return groups[:min(count, len(groups))], pairs
}

func hostOf(r view.NodeRow) string {
	if strings.EqualFold(r.Host, r.Node) {
		return ""
	}

	return Row(r.Host)
}

func outboxText(r view.NodeRow) string {
	if r.Outbox == 0 {
		return ""
	}

	return Count(r.Outbox, "report") + " wait"
}

func reason(r view.NodeRow) string {
	if r.State == fleet.StatusPending {
		return reasonOf(messageFirst(r.Reason), "it reported no reason")
	}

	return Row(messageFirst(r.Reason))
}

func rowsOf(all []view.Manifest) []view.ManifestRow {
	var out []view.ManifestRow
	for _, m := range all[:min(len(all), maxListed)] {
		out = append(out, view.ManifestRow{Manifest: m})
	}

	return out
}

// EventsData is the content of the page of events.
type EventsData struct {
	Query view.EventQuery
	Page  view.EventPage
}

type option struct{ value, word string }

// eventGroup is an event. If it is the end of a run, parts are the changes of the run.
type eventGroup struct {
	view.Event
	parts []view.Event
}

// grouped moves the changes of each run into the group of the run. A change without its run on the page has its
// own group.
func grouped(all []view.Event) []eventGroup {
	runs := map[[2]string]int{}
	var out []eventGroup
	for _, e := range all {
		if e.Kind == model.KindRun && e.RunID != "" {
			runs[[2]string{e.Node, e.RunID}] = len(out)
		}
		at, is := runs[[2]string{e.Node, e.RunID}]
		if is && e.Kind == model.KindTransaction {
			out[at].parts = append(out[at].parts, e)
			continue
		}
		out = append(out, eventGroup{Event: e})
	}

	return out
}

func fieldTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}

	return at.UTC().Format("2006-01-02T15:04")
}

// isOther reports whether a filter has a value that is not among the choices.
func isOther(current string, all []option) bool {
	return current != "" && !slices.ContainsFunc(all, func(o option) bool { return o.value == current })
}

func kinds() []option {
	return []option{{model.KindRun, "run"}, {model.KindTransaction, "resource"}, {model.KindHealth, "health check"}, {model.KindEnsure, "request"}, {model.KindNode, "agent"}}
}

func outcomes() []option {
	return options(func(o model.Outcome) string { return ofOutcome(o).word },
		model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeNoop,
		model.OutcomeUnmet, model.OutcomeRefused, model.OutcomeNotRun)
}

func causes() []option {
	return options(causeOf, model.CauseManifest, model.CauseDrift, model.CauseSchedule, model.CauseEnsure, model.CauseRequest, model.CauseHealth, model.CauseCommand)
}

func options[T ~string](word func(T) string, values ...T) []option {
	out := make([]option, len(values))
	for i, v := range values {
		out[i] = option{string(v), word(v)}
	}

	return out
}

func (d EventsData) filtered() bool {
	q := d.Query
	q.Before, q.Limit = 0, 0

	return q != view.EventQuery{}
}

// beforeURL returns the page of the events before a sequence number, or for 0 of the newest ones.
func (d EventsData) beforeURL(seq uint64) templ.SafeURL {
	q := d.Query
	q.Before = seq

	return EventsURL(q)
}

func ttlOf(r registration.Registration) string {
	if r.TTL == model.Never {
		return "until withdrawn"
	}

	return Duration(r.TTL.Std())
}

// Times is a time range: from Since until before Until, zero for no bound.
type Times struct{ Since, Until time.Time }

// AuditData is the content of the page of revisions.
type AuditData struct {
	Search   string
	Times    Times
	Offset   int
	Rows     []view.ControlChange
	Matching int
	// Terms are the terms of the current revisions.
	Terms map[uint64]*model.Terms
	// More means that the bucket has changes that were not searched.
	More bool
}

func leftOut(more bool) string {
	if more {
		return "it has more than these: the newest are shown, and of each node or group a quarter at most while others have some"
	}

	return "these are all"
}

func revisionID(revision uint64) templ.SafeURL {
	return templ.SafeURL("revision-" + strconv.FormatUint(revision, 10))
}

func (d AuditData) pageURL(from int) templ.SafeURL {
	return at(values("q", d.Search, "since", fieldTime(d.Times.Since), "until", fieldTime(d.Times.Until), "offset", offset(from)), "audit")
}

// aboutURL returns the page of the node or group of a control key.
func aboutURL(key string) templ.SafeURL {
	family, _, _ := model.SplitKey(key)
	if group, is := strings.CutPrefix(family, "group."); is {
		return NodesURL(view.NodeQuery{On: "group(" + strconv.Quote(group) + ")"})
	}

	return NodeURL(strings.TrimPrefix(family, "node."))
}

// ManifestsData is the content of the page of all manifests.
type ManifestsData struct {
	Progress view.Progress
	Search   string
	Offset   int
	Rows     []view.ManifestRow
	Matching int
}

func (d ManifestsData) pageURL(from int) templ.SafeURL {
	return at(values("q", d.Search, "offset", offset(from)), "manifests")
}

// Revision is a revision of an assignment with its changes.
type Revision struct {
	Entry model.Entry
	// What describes Lines, or the reason why there are none.
	What string
	// Lines are the lines of a diff, or of the first revision.
	Lines []string
}

const maxLines = 400

func (r Revision) lines() []line {
	shown := r.Lines[:min(len(r.Lines), maxLines)]
	var out []line
	if strings.HasPrefix(r.What, "Changes") {
		out = diffLines(Cut(strings.Join(shown, "\n"), MaxText))
	} else {
		for _, l := range shown {
			out = append(out, line{text: Cut(l, MaxRow)})
		}
	}
	if more := len(r.Lines) - len(shown); more > 0 {
		out = append(out, line{"hunk", Count(more, "line") + " more"})
	}

	return out
}
