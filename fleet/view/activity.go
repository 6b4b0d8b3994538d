package view

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// activityLog contains the events and runs of the fleet. It is safe for concurrent use.
type activityLog struct {
	// changed is called after a change that readers see. It must not call back.
	changed func()

	mu        sync.RWMutex
	repeats   *Repeats
	events    *bounded[Event]
	runs      runs
	requests  *requests
	points    points
	counts    counts
	attention *attentionCounts
	// invalid counts unreadable messages, lastInvalid is the reason of the last one.
	invalid     int
	lastInvalid string
	followers   followers
}

// newActivityLog returns an empty log. The last few events and runs of a node that isKnown reports are retained;
// isKnown must not call back.
func newActivityLog(o Options, isKnown func(node string) bool, changed func()) *activityLog {
	l := &activityLog{
		changed: changed, repeats: NewRepeats(), events: newBounded[Event](o.Events), runs: newRuns(o.Runs), requests: newRequests(),
		points: newPoints(o.Keep), counts: counts{reports: map[ReportCount]uint64{}}, attention: newAttentionCounts(o.Keep), followers: followers{all: map[*follower]bool{}},
	}
	l.events.isKnown, l.runs.isKnown = isKnown, isKnown

	return l
}

func (l *activityLog) forget(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range nodes {
		l.events.forget(name)
		l.runs.forget(name)
	}
}

// unreadable describes the unreadable messages, empty for none.
func (l *activityLog) unreadable() string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.invalid == 0 {
		return ""
	}

	return fmt.Sprintf("Messages of the stream of reports cannot be read, and are neither listed nor counted: %d; the last: %s", l.invalid, l.lastInvalid)
}

func (l *activityLog) ofNode(name string, mostRuns, mostEvents int) ([]RunRow, []Event) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	runs, events := []RunRow{}, []Event{}
	for _, it := range l.runs.of(name, mostRuns) {
		runs = append(runs, it.value)
	}
	for _, it := range l.events.of(name, mostEvents) {
		events = append(events, it.value)
	}

	return runs, events
}

func (l *activityLog) pointsSince(since, now time.Time) []Point {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.points.get(since, now)
}

// top returns the resources that need attention most, of one manifest or, for an empty name, of all. current
// are the current failures.
func (l *activityLog) top(manifest string, current []Failure, now time.Time) Top {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.attention.Top(manifest, current, now)
}

// Event is a report in the feed.
type Event struct {
	// Seq is its sequence number in the stream, where the feed resumes. The reports of a batch share one.
	// Time is the time when the server stored it.
	Seq      uint64        `json:"seq"`
	ID       string        `json:"id"`
	Time     time.Time     `json:"time"`
	Node     string        `json:"node"`
	Kind     string        `json:"kind"`
	Outcome  model.Outcome `json:"outcome"`
	Cause    model.Cause   `json:"cause,omitempty"`
	Manifest string        `json:"manifest,omitempty"`
	Resource string        `json:"resource,omitempty"`
	RunID    string        `json:"run_id,omitempty"`
	// CorrelationID is the id of the request that it answers.
	CorrelationID string `json:"correlation_id,omitempty"`
	// By is the unverified name of the request's sender, as the node repeats it.
	By string `json:"by,omitempty"`
	// Text describes the event in one line. A long line is cut.
	Text string `json:"text"`
}

// EventQuery selects events. Empty fields select all.
type EventQuery struct {
	Node, Kind, Manifest, RunID string
	Outcome                     model.Outcome
	Cause                       model.Cause
	Search                      string
	// Before selects events of lower Seq, 0 all. After selects events of higher Seq, for Follow only.
	Before, After uint64
	// Since and Until select the events that the server stored at or after Since and before Until; zero means no limit.
	Since, Until time.Time
	// Limit is the maximum number of events, 0 for 100.
	Limit int
}

// RunRow is a run in a list. Outcome is empty until its summary is known.
type RunRow struct {
	RunID    string      `json:"run_id"`
	Node     string      `json:"node"`
	Manifest string      `json:"manifest"`
	Revision uint64      `json:"revision"`
	Cause    model.Cause `json:"cause"`
	// Retry means that it repeats a failed run.
	Retry    bool          `json:"retry,omitempty"`
	Outcome  model.Outcome `json:"outcome,omitempty"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration"`
	Counts   model.Counts  `json:"counts"`
	Error    string        `json:"error,omitempty"`
}

// RequestRow is a request and the answers of nodes.
type RequestRow struct {
	// ID is the correlation id of the answers.
	ID string `json:"id"`
	// By is the sender and Nodes the number of nodes, unverified, as most answers repeat them. They are empty
	// and zero if they are unknown.
	By    string `json:"by,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
	// To are the unverified targets, On is the unverified target expression. Both are empty if they are
	// unknown.
	To       string    `json:"to,omitempty"`
	On       string    `json:"on,omitempty"`
	Resource string    `json:"resource"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Answers  int       `json:"answers"`
	Failed   int       `json:"failed"`
	Changed  int       `json:"changed"`
}

// IsRun marks a run request. The id of a run request may equal the id of another request.
func (r RequestRow) IsRun() bool { return r.Resource == ofRun }

// Point counts the reports of one interval by the clock of the server: runs, changed and failed runs, and
// repairs of drift.
type Point struct {
	At       time.Time `json:"at"`
	Runs     int       `json:"runs"`
	Changed  int       `json:"changed"`
	Failed   int       `json:"failed"`
	Repaired int       `json:"repaired"`
}

// Add adds a message of the stream. A repeated message changes nothing. The order does not matter.
func (l *activityLog) Add(m model.StoredReports) {
	all := make([]excerpt, 0, 1) // most messages are one report
	for _, r := range m.Reports {
		all = append(all, excerptOf(r, m.Sequence, m.Stored))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.message(&m)
	if m.Invalid != nil {
		l.invalid++
		l.lastInvalid = firstLine(m.Invalid.Error(), maxText)
		l.changed()
	}
	for i := range all {
		l.add(&all[i], position{m.Sequence, i})
	}
}

// AddRuns adds runs before the reports between them and the known reports. They appear in lists, but are
// counted only when Add adds them again.
func (l *activityLog) AddRuns(m model.StoredReports) {
	for i, r := range m.Reports {
		t := excerptOf(r, m.Sequence, m.Stored)
		if t.run == nil {
			continue
		}
		l.mu.Lock()
		l.runs.add(position{m.Sequence, i}, *t.run)
		l.changed()
		l.mu.Unlock()
	}
}

func (l *activityLog) add(t *excerpt, at position) {
	e := &t.Event
	if l.repeats.SeenBefore(e.Node, e.ID) {
		return
	}
	l.changed()
	l.counts.report(t, at.seq)
	it := l.events.newItem(e.Node, at, *e)
	l.events.put(it)
	l.followers.publish(it)
	if t.run != nil {
		l.runs.add(at, *t.run)
		l.points.add(e.Time, t)
	} else if e.Kind == model.KindTransaction && e.RunID != "" {
		l.runs.add(at, RunRow{RunID: e.RunID, Node: e.Node, Manifest: e.Manifest, Cause: e.Cause, Started: e.Time})
	}
	for _, a := range t.attention {
		l.attention.Add(e.Node, e.Time, a)
	}
	// A node answers a request once. Its later answers, while the request is remembered, are only events.
	if e.Kind == model.KindEnsure && e.CorrelationID != "" && !l.repeats.SeenBefore(e.Node, "answer "+keyOf(e.Resource, e.CorrelationID)) {
		l.requests.add(at, t)
	}
}

type matcher struct{ EventQuery }

func newMatcher(q EventQuery) matcher {
	q.Search = strings.ToLower(q.Search)

	return matcher{q}
}

// matches reports whether the query selects an event, at any position.
func (m *matcher) matches(e *Event) bool {
	switch {
	case m.Node != "" && m.Node != e.Node, m.Kind != "" && m.Kind != e.Kind, m.RunID != "" && m.RunID != e.RunID,
		m.Outcome != "" && m.Outcome != e.Outcome, m.Cause != "" && m.Cause != e.Cause:
		return false
	case m.Manifest != "" && m.Manifest != e.Manifest && !model.IsKeyOf(e.Manifest, m.Manifest):
		return false
	case !m.Since.IsZero() && e.Time.Before(m.Since), !m.Until.IsZero() && !e.Time.Before(m.Until):
		return false
	case m.Search == "":
		return true
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), m.Search) }

	return m.Search == strings.ToLower(e.CorrelationID) || has(e.Text) || has(e.Resource) || has(e.Manifest) || has(e.Node)
}

func limitOf(rows int) int {
	if rows <= 0 {
		return defaultLimit
	}

	return min(rows, maxLimit)
}

// defaultLimit and maxLimit are limits of the rows of a list.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Events returns a page of events, newest first.
func (f *Fleet) Events(q EventQuery) EventPage {
	m, limit := newMatcher(q), limitOf(q.Limit)
	out := EventPage{Progress: f.Progress(), Events: []Event{}}
	l := f.activityLog
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.events.newest(q.Before, func(it *item[Event]) bool {
		if !m.matches(&it.value) {
			return true
		}
		// Events of one batch stay on one page. The next page continues before their sequence number.
		if n := len(out.Events); n >= limit && out.Events[n-1].Seq != it.seq {
			out.More = true
			return false
		}
		out.Events = append(out.Events, it.value)
		return true
	})

	return out
}

// Runs returns runs, newest first.
func (l *activityLog) Runs(q EventQuery) []RunRow {
	m, limit := newMatcher(q), limitOf(q.Limit)
	m.Kind = "" // they are runs
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := []RunRow{}
	l.runs.newest(q.Before, func(it *item[RunRow]) bool {
		r := it.value
		if m.matches(&Event{Node: r.Node, RunID: r.RunID, Text: r.Error, Time: r.Started, Manifest: r.Manifest, Outcome: r.Outcome, Cause: r.Cause}) {
			out = append(out, r)
		}
		return len(out) < limit
	})

	return out
}

// followed is the number of events that wait for a reader. A reader with more is too slow.
const followed = 512

type follower struct {
	matcher
	events chan Event
}

type followers struct {
	all map[*follower]bool
	// last is the newest place.
	last position
}

// Follow returns a channel with the events after q.After, or for 0 the new events, in order, until cancel. It
// closes the channel if the reader is too slow or if too many events are already waiting. The reader then
// requests a page again.
func (l *activityLog) Follow(q EventQuery) (events <-chan Event, cancel func()) {
	w := &follower{newMatcher(q), make(chan Event, followed)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers.all[w] = true
	if q.After > 0 {
		l.events.after(q.After, func(it *item[Event]) bool {
			l.followers.send(w, it)
			return l.followers.all[w]
		})
	}

	return w.events, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.followers.end(w)
	}
}

// publish sends an event to the followers, unless a newer event was published.
func (f *followers) publish(it *item[Event]) {
	if it.compare(f.last) <= 0 {
		return
	}
	f.last = it.position
	for w := range f.all {
		f.send(w, it)
	}
}

// send sends an event to a reader, unless the reader is too slow.
func (f *followers) send(w *follower, it *item[Event]) {
	if !w.matches(&it.value) {
		return
	}
	select {
	case w.events <- it.value:
	default:
		f.end(w)
	}
}

func (f *followers) end(w *follower) {
	if f.all[w] {
		delete(f.all, w)
		close(w.events)
	}
}

// runs are the newest runs, by the places of their summaries. A row without an outcome has the place of a
// transaction, because its summary is unknown.
type runs struct {
	*bounded[RunRow]
	// byID contains the runs by hashes of node and id that no node can predict.
	byID map[uint64]*item[RunRow]
	seed maphash.Seed
}

func newRuns(most int) runs {
	r := runs{newBounded[RunRow](most), map[uint64]*item[RunRow]{}, maphash.MakeSeed()}
	r.dropped = func(it *item[RunRow]) { delete(r.byID, hashOf(r.seed, it.value.Node, it.value.RunID)) }

	return r
}

// add adds the summary of a run, or without an outcome a transaction of a run whose summary is unknown. It registers the
// id first, because the run may be dropped immediately.
func (r runs) add(at position, row RunRow) {
	id := hashOf(r.seed, row.Node, row.RunID)
	if known := r.byID[id]; known != nil {
		if row.Outcome == "" || known.value.Outcome != "" {
			return // a node reports a run once
		}
		r.remove(known)
	}
	it := r.newItem(row.Node, at, row)
	r.byID[id] = it
	r.put(it)
}

// rememberedReports is the minimum number of remembered reports. It exceeds the reports within the minutes in
// which a node may repeat one.
const rememberedReports = 100_000

// Repeats finds repeated reports by hashes that no node can predict. Create it with NewRepeats.
type Repeats struct {
	seed maphash.Seed
	// recent becomes before when it is full.
	recent, before map[uint64]struct{}
}

// NewRepeats returns a Repeats that has seen no report.
func NewRepeats() *Repeats {
	return &Repeats{seed: maphash.MakeSeed(), recent: map[uint64]struct{}{}}
}

// SeenBefore reports whether it was called with this id of a node before, among the last rememberedReports calls.
func (r *Repeats) SeenBefore(node, id string) bool {
	hash := hashOf(r.seed, node, id)
	_, isRecent := r.recent[hash]
	if _, seen := r.before[hash]; seen || isRecent {
		return true
	}
	if len(r.recent) >= rememberedReports {
		r.before, r.recent = r.recent, map[uint64]struct{}{}
	}
	r.recent[hash] = struct{}{}

	return false
}

// hashOf returns a hash of a node and an id that the node chose.
func hashOf(seed maphash.Seed, node, id string) uint64 {
	return maphash.Comparable(seed, [2]string{node, id})
}
