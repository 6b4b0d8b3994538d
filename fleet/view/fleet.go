// Package view is the read model of a fleet: nodes, assignments and reports in limited memory, for many
// concurrent readers. It is independent of NATS and of pages: a feed adds the data, possibly repeated, late
// or out of order. Adding all data to a new view gives the same view.
package view

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

const (
	// tick is the minimum time between two signals of changes.
	tick = 250 * time.Millisecond
	// silencePause is the interval between searches for silent nodes.
	silencePause = time.Second
)

// Options configure a Fleet. The zero value is usable.
type Options struct {
	// Version is the version of this muster. Nodes with an earlier version are marked.
	Version string
	// Keep is the retention time, 24 hours for 0.
	Keep time.Duration
	// Events and Runs limit the retained events and runs, 20,000 each for 0. If others need the room, one
	// node uses at most a hundredth.
	Events, Runs int
	// Facts yields the facts of nodes, see targets.Selector. Facts are too large to retain. If it is nil, no
	// node has facts.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of nodes, like Facts.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
}

// Fleet is the view of a fleet: its current state, its events, and how complete they are. It is safe for
// concurrent use. Do not change returned values.
type Fleet struct {
	options Options
	*inventory
	*activityLog
	*completeness
	*changes
	overview cache
}

// New returns an empty fleet. Run signals its changes.
func New(o Options) *Fleet {
	const many = 20_000
	if o.Keep <= 0 {
		o.Keep = 24 * time.Hour
	}
	if o.Events <= 0 {
		o.Events = many
	}
	if o.Runs <= 0 {
		o.Runs = many
	}
	if o.Facts == nil {
		o.Facts = func(context.Context, []string) iter.Seq2[model.NodeFacts, error] {
			return func(func(model.NodeFacts, error) bool) {}
		}
	}
	f := &Fleet{options: o, changes: &changes{waiting: map[chan struct{}]bool{}}}
	f.inventory = newInventory(o, f.note)
	f.activityLog = newActivityLog(o, f.IsKnown, f.note)
	f.completeness = &completeness{noted: f.note, keep: o.Keep, problems: map[problemID]problem{}}

	return f
}

// Run finds silent nodes and signals changes, until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	var checked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if now.Sub(checked) >= silencePause {
				checked = now
				f.silence(now)
			}
			f.signal()
		}
	}
}

// Progress describes how complete the view is. Pages show it until the view is complete.
type Progress struct {
	// Nodes means that the states of all nodes and all assignments are known, and with them the last run of
	// each manifest on each node. LastRuns means that the newest run of each node and outcome is known.
	// History means that all retained reports were read.
	Nodes    bool `json:"nodes"`
	LastRuns bool `json:"last_runs"`
	History  bool `json:"history"`
	// Since is the time from which all reports are known, zero for none.
	Since time.Time `json:"since,omitzero"`
	// BlindSince is the time since which no data about nodes arrives, zero if data arrives. States of nodes are the
	// last known states then.
	BlindSince time.Time `json:"blind_since,omitzero"`
	// Problems are the reasons why the view may be outdated, such as a lost connection to NATS.
	Problems []string `json:"problems"`
	// Notice describes an event after which the data is current but some is lost, such as a restored stream, with its time.
	Notice string `json:"notice,omitempty"`
	// Incomplete lists the missing parts of the complete history: reports before the newest 2 GiB, older
	// reports of nodes with a full share, and unreadable messages.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Overview is the overview of the fleet.
type Overview struct {
	Progress Progress `json:"progress"`
	Summary
	// History contains the counts of the intervals, oldest first.
	History []Point `json:"over_time"`
	// Top are the resources that fail, drift and flap most.
	Top Top `json:"top"`
	// Webhooks are the webhooks with failed, late or incomplete deliveries, with the reason, by name.
	Webhooks []WebhookProblem `json:"webhooks"`
}

// NodePage is a page of nodes.
type NodePage struct {
	Progress Progress  `json:"progress"`
	Rows     []NodeRow `json:"rows"`
	// Known is the number of nodes, Matching the number of selected nodes.
	Known    int `json:"known"`
	Matching int `json:"matching"`
	// States counts the nodes that the query without its state selects.
	States []State `json:"states"`
	// Undecided are the names of nodes for which the query cannot be evaluated.
	Undecided []targets.Undecided `json:"undecided"`
	// Warnings are the warnings of targets.Selection.
	Warnings []string `json:"warnings"`
}

// NodeDetail is the data of one node.
type NodeDetail struct {
	Progress Progress `json:"progress"`
	Node
	// Runs are its newest runs, Events its newest events, newest first.
	Runs   []RunRow `json:"runs"`
	Events []Event  `json:"events"`
}

// ManifestRow is a manifest in a list, independent of its targets.
type ManifestRow struct {
	Manifest
	// Keys are its assignments, by key.
	Keys []Assigned `json:"keys"`
	// Changed is the time of the last assignment.
	Changed time.Time `json:"changed,omitzero"`
}

// Assigned is one assignment of a manifest.
type Assigned struct {
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Digest   string    `json:"digest,omitempty"`
	// By is the unverified author, empty if unknown.
	By string `json:"by,omitempty"`
	// Terms are the settings of the assignment, nil for none.
	Terms *model.Terms `json:"terms,omitempty"`
}

// ManifestDetail is the data of one manifest.
type ManifestDetail struct {
	Progress Progress `json:"progress"`
	ManifestRow
	// Nodes is a page of the selected nodes. Nodes that need attention come first. Matching is the number of
	// selected nodes.
	Nodes    []Assignment `json:"nodes"`
	Matching int          `json:"matching"`
	Failing  []Failure    `json:"failing"`
	Top      Top          `json:"top"`
	Runs     []RunRow     `json:"runs"`
}

// RunDetail is one run with its reported transactions.
type RunDetail struct {
	Progress Progress `json:"progress"`
	// Run is nil until its summary is known.
	Run          *model.Run          `json:"run"`
	Node         string              `json:"node"`
	Transactions []model.Transaction `json:"transactions"`
	// More is the number of omitted transactions.
	More int `json:"more"`
	// Request is the id of the request that changed the resource, empty for a run. Run is nil if it is set.
	Request string `json:"request,omitempty"`
}

// EventPage is a page of events, newest first.
type EventPage struct {
	Progress Progress `json:"progress"`
	Events   []Event  `json:"events"`
	// More means that older events are retained.
	More bool `json:"more"`
}

// RequestDetail is a request with the nodes that did not answer it.
type RequestDetail struct {
	Progress Progress `json:"progress"`
	RequestRow
	// Missing are the sorted names of current targets that did not answer. Others are the nodes that answered
	// without being targets. Both are empty if Unknown has the reason.
	Missing []string `json:"missing"`
	Others  []string `json:"others"`
	Unknown string   `json:"unknown,omitempty"`
	// SameID means that a run request and another request have the id. This is one of them.
	SameID bool `json:"same_id,omitempty"`
	// Answered are the sorted names of known nodes that answered.
	Answered []string `json:"-"`
}

// Limits of the returned runs and events of a node.
const (
	maxRunsOfNode   = 50
	maxEventsOfNode = 100
)

// Node returns the data of a node, and whether it is known.
func (f *Fleet) Node(name string) (NodeDetail, bool) {
	n, is := f.node(name)
	if !is {
		return NodeDetail{}, false
	}
	out := NodeDetail{Progress: f.progress(name), Node: n}
	out.Runs, out.Events = f.ofNode(name, maxRunsOfNode, maxEventsOfNode)

	return out, true
}

const maxRunsOfManifest = 50

// Manifests returns the assigned manifests. Manifests that need attention come first.
func (f *Fleet) Manifests() []ManifestRow {
	s, _ := f.overview.get(f, time.Now())
	keys := map[string][]Assigned{}
	_, assigned := f.now()
	for name, e := range assigned.All() {
		keys[name] = append(keys[name], Assigned{Key: e.Key, Revision: e.Revision, Time: e.Time, Digest: e.Digest, By: e.By, Terms: e.Terms})
	}
	out := make([]ManifestRow, len(s.Manifests))
	for i, m := range s.Manifests {
		out[i] = ManifestRow{Manifest: m, Keys: keys[m.Name]}
		for _, k := range out[i].Keys {
			if k.Time.After(out[i].Changed) {
				out[i].Changed = k.Time
			}
		}
	}

	return out
}

// Manifest returns the data of a manifest, and whether it is assigned.
func (f *Fleet) Manifest(q ManifestQuery) (ManifestDetail, bool) {
	all := f.Manifests()
	at := slices.IndexFunc(all, func(m ManifestRow) bool { return m.Name == q.Name })
	if at < 0 {
		return ManifestDetail{}, false
	}
	now := time.Now()
	s, _ := f.overview.get(f, now)
	out := ManifestDetail{ManifestRow: all[at], Failing: []Failure{}}
	for _, failure := range s.Failing {
		if failure.Manifest == q.Name {
			out.Failing = append(out.Failing, failure)
		}
	}
	out.Progress, out.Top, out.Runs = f.Progress(), f.top(q.Name, out.Failing, now), f.Runs(EventQuery{Manifest: q.Name, Limit: maxRunsOfManifest})
	out.Nodes, out.Matching = f.assignments(q)

	return out, true
}

const (
	// overviewPause is the minimum time between two overviews without a signal of a change. overviewAge is
	// the maximum age of an overview without changes.
	overviewPause = 500 * time.Millisecond
	overviewAge   = 10 * time.Second
)

// cache is the last overview. The holder of its lock creates the next one while others wait.
type cache struct {
	sync.Mutex
	made              time.Time
	count, generation uint64
	summary           Summary
	top               Top
	// lost are the keys of SetLost.
	lost map[string]bool
}

// Overview returns the overview of the fleet. It is created at most a few times a second.
func (f *Fleet) Overview() Overview {
	now := time.Now()
	s, top := f.overview.get(f, now)
	progress, since := f.Progress(), now.Add(-f.options.Keep)
	if progress.Since.After(since) {
		since = progress.Since
	}

	return Overview{Progress: progress, Summary: s, Top: top, History: f.pointsSince(since, now), Webhooks: f.webhooks()}
}

func (c *cache) get(f *Fleet, now time.Time) (Summary, Top) {
	c.Lock()
	defer c.Unlock()
	count, generation := f.changes.count.Load(), f.changes.generation.Load() // before the data is read
	age := now.Sub(c.made)
	if !c.made.IsZero() && age < overviewAge && (count == c.count || generation == c.generation && age < overviewPause) {
		return c.summary, c.top
	}
	c.summary = f.summary(f.options.Version, now)
	c.summary.SetLost(c.lost)
	c.top = f.top("", c.summary.Failing, now)
	c.made, c.count, c.generation = now, count, generation

	return c.summary, c.top
}

// Unassigned returns the keys that reachable nodes run without an assignment, with the revisions: see Summary.
func (f *Fleet) Unassigned() map[string]uint64 {
	s := f.summary(f.options.Version, time.Now())

	return s.Revisions()
}

// SetLost sets the keys of Unassigned that the bucket lost.
func (f *Fleet) SetLost(lost map[string]bool) {
	f.overview.Lock()
	defer f.overview.Unlock()
	if !maps.Equal(f.overview.lost, lost) {
		f.overview.lost = lost
		f.note()
	}
}

// changes counts and signals changes for readers.
type changes struct {
	// count counts changes, generation counts signals.
	count, generation atomic.Uint64

	mu sync.Mutex
	// signalled is the number of changes at the last signal.
	signalled uint64
	waiting   map[chan struct{}]bool
}

func (c *changes) note() { c.count.Add(1) }

// signal wakes waiting readers if there were changes.
func (c *changes) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.count.Load()
	if count == c.signalled {
		return
	}
	c.signalled = count
	c.generation.Add(1)
	for w := range c.waiting {
		select {
		case w <- struct{}{}:
		default: // the previous signal is still pending
		}
	}
}

// Changes returns a channel that receives after changes, at most a few times a second, until cancel. A slow
// reader only receives later.
func (c *changes) Changes() (changed <-chan struct{}, cancel func()) {
	w := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[w] = true

	return w, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, w)
	}
}
