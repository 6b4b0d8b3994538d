package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

const maxSteps = 500

// maxTexts is the maximum number of bytes of diffs, errors and outputs on a page.
const maxTexts = 256 << 10

type budget struct{ left int }

// take returns the part of a text that fits.
func (b *budget) take(text string) string {
	if text == "" {
		return ""
	}
	if b.left <= 0 {
		return "left out: this page has " + Bytes(maxTexts) + " of other texts"
	}
	text = Cut(text, min(b.left, MaxText))
	b.left -= len(text)

	return text
}

// step is the result of one resource.
type step struct {
	look
	ref, text string
	// open is set for a failed resource.
	open bool
	t    model.Transaction
	// changes, errors and checks are limited parts of the transaction.
	changes []change
	errors  []string
	checks  []check
}

type change struct {
	message, property, from, to string
	diff                        []line
}

type check struct {
	look
	name, output string
	tries        int
}

type line struct{ class, text string }

func stepsOf(transactions []model.Transaction) []step {
	b := &budget{maxTexts}
	// Failed resources use the budget first.
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
	s := step{look: ofOutcome(t.Outcome()), ref: Row(t.Ref().String()), text: Row(view.DescribeAnswer(model.EnsureResponse{State: &t})), open: !t.OK(), t: t}
	for _, e := range t.Errors[:min(len(t.Errors), 50)] {
		s.errors = append(s.errors, b.take(e))
	}
	for _, c := range t.Changes[:min(len(t.Changes), 200)] {
		s.changes = append(s.changes, change{message: Row(cmp.Or(c.Message, c.Action)), property: Row(c.Property), from: shortDigest(Row(c.From)), to: shortDigest(Row(c.To)), diff: diffLines(b.take(c.Diff))})
	}
	for _, h := range t.HealthCheck[:min(len(t.HealthCheck), 50)] {
		s.checks = append(s.checks, check{ofEvent(string(h.Status)), Row(h.Name), b.take(h.Output), h.Tries})
	}

	return s
}

func shortDigest(text string) string {
	if digest, is := strings.CutPrefix(text, digestWord); is && len(digest) == 64 {
		return digestWord + digest[:12]
	}

	return text
}

const digestWord = "sha256 "

func (s step) detailed() bool {
	return len(s.changes) > 0 || len(s.errors) > 0 || len(s.checks) > 0 || s.t.Source.Line > 0 || len(s.t.UnmetRequirements) > 0 || s.t.Drift != nil
}

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

// around returns the numbered lines of a source around a line, none if it has no such line.
func around(source []string, at int) []line {
	if at < 1 || at > len(source) {
		return nil
	}
	var out []line
	for i := max(at-2, 1); i <= min(at+2, len(source)); i++ {
		l := line{text: fmt.Sprintf("%4d  %s", i, Cut(source[i-1], MaxRow))}
		if i == at {
			l.class = "here"
		}
		out = append(out, l)
	}

	return out
}

// Shown selects resources of a run.
type Shown string

// The selections.
const (
	ShownAll Shown = ""
	// ShownChanged selects resources that changed, or would have changed.
	ShownChanged Shown = "changed"
	// ShownFailed selects resources that are not in their desired state.
	ShownFailed Shown = "failed"
)

func (d RunData) page() []model.Transaction {
	all := d.Show.of(d.Detail.Transactions)

	return all[:min(len(all), maxSteps)]
}

func (d RunData) more() int {
	return d.Detail.More + max(len(d.Show.of(d.Detail.Transactions))-maxSteps, 0)
}

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

func (s Shown) of(all []model.Transaction) []model.Transaction {
	return slices.DeleteFunc(slices.Clone(all), func(t model.Transaction) bool { return !s.in(t) })
}

// RunData is the content of the page of a run.
type RunData struct {
	Node, ID string
	Detail   view.RunDetail
	Show     Shown
	// Source are the lines of the manifest SourceFile, nil if they are unknown.
	Source     []string
	SourceFile string
}

func (d RunData) source(p model.Position) []line {
	if p.File != d.SourceFile {
		return nil
	}

	return around(d.Source, p.Line)
}

func (d RunData) outcome() model.Outcome {
	if d.Detail.Run == nil {
		return ""
	}

	return d.Detail.Run.Outcome()
}

type shownCount struct {
	shown Shown
	word  string
	count int
	url   templ.SafeURL
}

func (d RunData) shownCounts() []shownCount {
	var out []shownCount
	for _, s := range []shownCount{{shown: ShownAll, word: "All"}, {shown: ShownFailed, word: "Failed"}, {shown: ShownChanged, word: "Changed"}} {
		s.count, s.url = len(s.shown.of(d.Detail.Transactions)), at(values("show", string(s.shown)), "runs", d.Node, d.ID)
		out = append(out, s)
	}

	return out
}

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

func resourceFacts(t model.Transaction) string {
	words := []string{}
	for _, w := range []struct{ name, value string }{{"provider", t.Provider}, {"alias", t.Alias}, {"desired", t.RequestedEnsure}, {"final", t.FinalEnsure}} {
		if w.value != "" {
			words = append(words, w.name+" "+Row(w.value))
		}
	}

	return strings.Join(words, " · ")
}

const maxStatuses = 200

// moreStatuses returns the number of manifests of a node that its page does not list.
func moreStatuses(d view.NodeDetail) int {
	return max(len(d.Statuses)-maxStatuses, 0) + d.OmittedManifests
}

// nodeReason returns the reason for the state of a node, with the message of the node.
func nodeReason(d view.NodeDetail) string {
	reason, message := stateReason(d), Row(d.Message)
	if d.Unreadable != "" || message == "" || strings.Contains(reason, message) {
		return reason
	}

	return strings.TrimPrefix(reason+"; "+message, "; ")
}

// stateReason returns the reason for the state of a node, empty for none.
func stateReason(d view.NodeDetail) string {
	if d.Unreadable != "" {
		return Row(d.Unreadable)
	}
	if d.State == fleet.StatusPaused {
		return Row(d.Paused.Details())
	}
	for _, s := range d.Statuses {
		if s.Status == d.State && s.Status != fleet.StatusUpToDate {
			if strings.HasPrefix(s.Reason, s.Key+":") {
				return assignmentReason(s) // it names the manifest
			}
			return Row(nameOf(s.Key)) + ": " + assignmentReason(s)
		}
	}

	return ""
}

// assignmentURL returns the page of the manifest of an assignment, or the history of the key if it is not assigned.
func assignmentURL(s view.Assignment) templ.SafeURL {
	if s.Status == fleet.StatusUnassigned {
		return AuditURL(s.Key)
	}

	return manifestURL(nameOf(s.Key))
}

func assignmentReason(s view.Assignment) string {
	if s.Status == fleet.StatusPending {
		return reasonOf(messageFirst(s.Reason), "it reported no reason")
	}

	return Row(messageFirst(s.Reason))
}

func silentAfter(d view.NodeDetail) string {
	if d.SilentAfter == 0 {
		return "never"
	}

	return Duration(d.SilentAfter.Std())
}

func clockText(d view.NodeDetail) string {
	if d.Clock == (model.ClockOffset{}) {
		return ""
	}
	if d.Clock.Apparent() {
		return d.Clock.String()
	}

	return "agrees with the NATS server's"
}

func healthOf(h model.HealthCounts) []share {
	var out []share
	for _, s := range []share{
		{ofEvent(string(model.HealthCritical)), h.Critical}, {ofEvent(string(model.HealthWarning)), h.Warning},
		{ofEvent(string(model.HealthUnknown)), h.Unknown}, {ofEvent(string(model.HealthOK)), h.OK},
	} {
		if s.count > 0 {
			out = append(out, s)
		}
	}

	return out
}

// ManifestData is the content of the page of a manifest.
type ManifestData struct {
	Query  view.ManifestQuery
	Detail view.ManifestDetail
	Tab    Tab
	Acts
}

// Tab is a part of the page of a manifest.
type Tab string

// The tabs.
const (
	TabNodes       Tab = ""
	TabErrors      Tab = "errors"
	TabAssignments Tab = "assignments"
	TabRuns        Tab = "runs"
)

// tab is a link to a part of a page. A negative count is not shown.
type tab struct {
	tab   Tab
	word  string
	count int
	url   templ.SafeURL
}

func (d ManifestData) tabs() []tab {
	out := []tab{{tab: TabNodes, word: "Nodes", count: d.Detail.Targets}, {tab: TabErrors, word: "Errors", count: len(d.Detail.Failing)}, {tab: TabAssignments, word: "Assignments", count: len(d.Detail.Keys)}, {tab: TabRuns, word: "Runs", count: -1}}
	for i, t := range out {
		out[i].url = at(values("tab", string(t.tab)), "manifests", d.Query.Name)
	}

	return out
}

func targetOf(key string) string {
	t, _, err := fleet.ParseKey(key)
	if err != nil {
		return ""
	}

	return strings.Replace(t.String(), ".", " ", 1)
}

func refs(all []model.Ref) string {
	var out []string
	for _, r := range all[:min(len(all), 20)] {
		out = append(out, r.String())
	}

	return Row(strings.Join(out, ", "))
}

// placeOfStep returns the position of a resource, and the resource that contains it.
func placeOfStep(t model.Transaction) string {
	text := cmp.Or(Row(t.Source.String()), "")
	if t.Within != (model.Ref{}) {
		text += ", within " + Row(t.Within.String())
	}

	return text
}

func (d ManifestData) statusURL(s fleet.Status) templ.SafeURL {
	return manifestStatusURL(d.Query.Name, s)
}

func (d ManifestData) pageURL(from int) templ.SafeURL {
	return at(values("status", string(d.Query.Status), "offset", offset(from)), "manifests", d.Query.Name)
}

// The limits of shown facts.
const (
	maxFacts = 2000
	maxDepth = 40
)

// fact is a value, with its name in target expressions.
type fact struct{ path, value string }

type factGroup struct {
	name  string
	facts []fact
}

type factList struct {
	groups []factGroup
	shown  int
	more   int
}

// FactsData is the content of the page of facts.
type FactsData struct {
	Node     string
	Progress view.Progress
	Facts    json.RawMessage
	Search   string
	// Problem is the reason why the facts cannot be read, empty if they were.
	Problem string
}

// list returns the facts whose names or values contain the searched text.
func (d FactsData) list() (factList, error) {
	var all any
	r := json.NewDecoder(bytes.NewReader(d.Facts))
	r.UseNumber()
	if err := r.Decode(&all); err != nil {
		return factList{}, err
	}
	var out factList
	search := strings.ToLower(d.Search)
	top, _ := all.(map[string]any)
	for _, name := range factOrder(top) {
		g := factGroup{name: Row(name)}
		walk("facts"+member(name), top[name], 0, func(path, value string) {
			switch {
			case search != "" && !strings.Contains(strings.ToLower(path), search) && !strings.Contains(strings.ToLower(value), search):
			case out.shown == maxFacts:
				out.more++
			default:
				g.facts, out.shown = append(g.facts, fact{Cut(path, MaxRow), Cut(value, MaxRow)}), out.shown+1
			}
		})
		if len(g.facts) > 0 {
			out.groups = append(out.groups, g)
		}
	}

	return out, nil
}

// factOrder returns the names of fact groups: the most used groups first, then the others by name.
func factOrder(top map[string]any) []string {
	first := []string{"host", "network", "cpu", "memory", "partition"}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := slices.Sorted(maps.Keys(top))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })

	return names
}

// walk calls a function with the path and the text of each scalar in a value.
func walk(path string, v any, depth int, each func(path, value string)) {
	switch v := v.(type) {
	case map[string]any:
		if depth == maxDepth || len(v) == 0 {
			each(path, fmt.Sprintf("{%s}", Count(len(v), "entry")))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(path+member(name), v[name], depth+1, each)
		}
	case []any:
		if depth == maxDepth || len(v) == 0 {
			each(path, fmt.Sprintf("[%s]", Count(len(v), "entry")))
			return
		}
		for i, e := range v {
			walk(path+"["+strconv.Itoa(i)+"]", e, depth+1, each)
		}
	case string:
		each(path, strconv.Quote(Cut(v, MaxRow)))
	case nil:
		each(path, "nil")
	default:
		each(path, fmt.Sprint(v))
	}
}

// member returns the expression for a member of a mapping.
func member(name string) string {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return "[" + strconv.Quote(Cut(name, MaxRow)) + "]"
		}
	}

	return "." + Cut(name, MaxRow)
}
