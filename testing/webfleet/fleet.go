// Package webfleet is a fleet in memory for the dashboard. Tests of fleet/web and of browsers set its data
// and change it during a session.
package webfleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Data is the data of a fleet.
type Data struct {
	Progress view.Progress
	Webhooks []view.WebhookProblem
	// Version is the version that the nodes' versions are compared with.
	Version string
	// Nodes are by name.
	Nodes   []model.Node
	Entries []model.Entry
	History []view.Point
	Top     view.Top
	// Runs and Events are the newest first.
	Runs     []view.RunRow
	Events   []view.Event
	Requests []view.RequestRow
	// Answers are the answers to requests, by id.
	Answers map[string][]view.Answer
	// Missing are the nodes that did not answer requests, by id.
	Missing map[string][]string
	// Details contains runs by node/id, Facts documents by node, Revisions the revisions of a key, oldest
	// first.
	Details       map[string]view.RunDetail
	Facts         map[string]json.RawMessage
	Revisions     map[string][]model.Entry
	Registrations []registration.Registration
	// Control has the newest first. MoreControl reports that the bucket has more.
	Control     []model.Entry
	MoreControl bool
	// Err is the error of the sources, nil for none.
	Err error
	// Calls counts what the dashboard asked the model for.
	Calls int
}

// Fleet is a web.Model and a web.Source of Data. It may be used by several goroutines.
type Fleet struct {
	now func() time.Time

	mu       sync.Mutex
	data     Data
	watchers map[chan struct{}]bool
}

// New returns a fleet.
func New(d Data, now func() time.Time) *Fleet {
	return &Fleet{now: now, data: d, watchers: map[chan struct{}]bool{}}
}

// Change changes the fleet, and wakes those who follow its changes.
func (f *Fleet) Change(change func(*Data)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.data)
	for w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Watchers returns how many follow the changes.
func (f *Fleet) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()

	return len(f.watchers)
}

// Calls returns how often the model was asked for something.
func (f *Fleet) Calls() int { return f.get().Calls - 1 }

// get returns the data and counts the reads.
func (f *Fleet) get() Data {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data.Calls++

	return f.data
}

// Progress returns how complete the data is.
func (f *Fleet) Progress() view.Progress { return f.get().Progress }

// Overview returns the overview of the nodes.
func (f *Fleet) Overview() view.Overview {
	d := f.get()

	return view.Overview{Progress: d.Progress, Summary: view.SummaryOf(d.Nodes, d.Entries, d.Version, f.now()), History: d.History, Top: d.Top, Webhooks: d.Webhooks}
}

// details returns the data of each node.
func (d Data) details() []view.Node {
	var out []view.Node
	assigned := fleet.NewAssigned(d.Entries)
	for i := range d.Nodes {
		statuses := assigned.Statuses(d.Nodes[i])
		out = append(out, view.NewNode(d.Nodes[i], statuses, assigned))
	}

	return out
}

// Nodes returns the nodes that a query selects.
func (f *Fleet) Nodes(q view.NodeQuery) (view.NodePage, error) {
	d := f.get()
	out := view.NodePage{Progress: d.Progress, Known: len(d.Nodes), Rows: []view.NodeRow{}}
	var matching map[string]bool
	if q.On != "" {
		e, err := targets.Compile(q.On)
		if err != nil {
			return out, err
		}
		selection, err := targets.Selector{Statuses: fleet.NewAssigned(d.Entries).Statuses, Facts: d.facts}.Select(context.Background(), e, d.Nodes)
		if err != nil {
			return out, err
		}
		matching, out.Undecided = selection.Names(), selection.Undecided
	}
	counts := map[fleet.Status]int{}
	for _, n := range d.details() {
		if matching != nil && !matching[n.Node.Node] || !strings.Contains(fmt.Sprint(n.Node.Node, n.Host, n.Groups, n.Labels), q.Search) {
			continue
		}
		counts[n.State]++
		if q.State == "" || q.State == n.State {
			out.Rows = append(out.Rows, rowOf(n))
		}
	}
	for _, s := range []fleet.Status{fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusNoManifest, fleet.StatusOK} {
		if counts[s] > 0 {
			out.States = append(out.States, view.State{State: s, Members: view.Members{Nodes: counts[s]}})
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b view.NodeRow) int { return compare(q.Sort, a, b) })
	if q.Descending {
		slices.Reverse(out.Rows)
	}
	out.Matching = len(out.Rows)
	out.Rows = part(out.Rows, q.Offset, q.Limit)

	return out, nil
}

func (d Data) facts(_ context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	return func(yield func(model.NodeFacts, error) bool) {
		for _, n := range nodes {
			var facts model.Facts
			if json.Unmarshal(d.Facts[n], &facts) == nil && !yield(model.NodeFacts{Node: n, Facts: facts}, nil) {
				return
			}
		}
	}
}

func compare(by string, a, b view.NodeRow) int {
	switch by {
	case "state":
		return cmp.Compare(a.State, b.State)
	case "since":
		return a.Since.Compare(b.Since)
	case "heard":
		return a.Heard.Compare(b.Heard)
	case "version":
		return cmp.Compare(a.Version, b.Version)
	case "host":
		return cmp.Compare(a.Host, b.Host)
	default:
		return cmp.Compare(a.Node, b.Node)
	}
}

func rowOf(n view.Node) view.NodeRow {
	r := view.NodeRow{Node: n.Node.Node, Host: n.Host, State: n.State, Since: n.Since, Heard: n.Heard, Version: n.Version, Groups: n.Groups, Labels: n.Labels, Outbox: n.Outbox}
	for _, s := range n.Statuses {
		r.Tally.Add(s.RolloutStatus)
		if s.Status == n.State && r.Reason == "" {
			r.Reason = s.Reason
		}
	}

	return r
}

// part returns a page of a list.
func part[T any](all []T, offset, limit int) []T {
	limit = cmp.Or(limit, 100)
	from := min(offset, len(all))

	return all[from:min(from+limit, len(all))]
}

// Node returns the data of a node.
func (f *Fleet) Node(name string) (view.NodeDetail, bool) {
	d := f.get()
	at := slices.IndexFunc(d.Nodes, func(n model.Node) bool { return n.Node == name })
	if at < 0 {
		return view.NodeDetail{}, false
	}
	out := view.NodeDetail{Progress: d.Progress, Node: d.details()[at], Events: d.events(view.EventQuery{Node: name})}
	for _, r := range d.Runs {
		if r.Node == name && len(out.Runs) < 20 {
			out.Runs = append(out.Runs, r)
		}
	}

	return out, true
}

// Manifests returns the manifests by name, those with something to look at first.
func (f *Fleet) Manifests() []view.ManifestRow { return f.get().manifests(f.now()) }

func (d Data) manifests(now time.Time) []view.ManifestRow {
	out := []view.ManifestRow{}
	for _, m := range view.SummaryOf(d.Nodes, d.Entries, d.Version, now).Manifests {
		r := view.ManifestRow{Manifest: m}
		for _, e := range d.Entries {
			if _, name, err := fleet.ParseKey(e.Key); err == nil && name == m.Name {
				r.Keys = append(r.Keys, view.Assigned{Key: e.Key, Revision: e.Revision, Time: e.Time, Digest: e.Digest, By: e.By, Terms: e.Terms})
				if e.Time.After(r.Changed) {
					r.Changed = e.Time
				}
			}
		}
		out = append(out, r)
	}

	return out
}

// Manifest returns the data of a manifest.
func (f *Fleet) Manifest(q view.ManifestQuery) (view.ManifestDetail, bool) {
	d := f.get()
	all := d.manifests(f.now())
	at := slices.IndexFunc(all, func(m view.ManifestRow) bool { return m.Name == q.Name })
	if at < 0 {
		return view.ManifestDetail{}, false
	}
	out := view.ManifestDetail{Progress: d.Progress, ManifestRow: all[at], Top: d.Top}
	for _, n := range d.details() {
		for _, s := range n.Statuses {
			if _, name, err := fleet.ParseKey(s.Key); err == nil && name == q.Name && s.Applies() && (q.Status == "" || q.Status == s.Status) {
				out.Nodes = append(out.Nodes, s)
			}
		}
	}
	slices.SortStableFunc(out.Nodes, func(a, b view.Assignment) int { return cmp.Compare(rank(a.Status), rank(b.Status)) })
	out.Matching = len(out.Nodes)
	out.Nodes = part(out.Nodes, q.Offset, q.Limit)
	for _, x := range view.SummaryOf(d.Nodes, d.Entries, d.Version, f.now()).Failing {
		if x.Manifest == q.Name {
			out.Failing = append(out.Failing, x)
		}
	}
	for _, r := range d.Runs {
		if _, name, err := fleet.ParseKey(r.Manifest); err == nil && name == q.Name && len(out.Runs) < 20 {
			out.Runs = append(out.Runs, r)
		}
	}

	return out, true
}

func rank(s fleet.Status) int {
	return slices.Index([]fleet.Status{fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUpToDate}, s)
}

// Runs returns the runs of a node or a manifest.
func (f *Fleet) Runs(view.EventQuery) []view.RunRow { return f.get().Runs }

// Events returns the events that a query selects.
func (f *Fleet) Events(q view.EventQuery) view.EventPage {
	d := f.get()
	all := d.events(q)

	return view.EventPage{Progress: d.Progress, Events: part(all, 0, q.Limit), More: len(all) > cmp.Or(q.Limit, 100)}
}

func (d Data) events(q view.EventQuery) []view.Event {
	return slices.DeleteFunc(slices.Clone(d.Events), func(e view.Event) bool {
		return q.Node != "" && e.Node != q.Node || q.Kind != "" && e.Kind != q.Kind || q.Outcome != "" && e.Outcome != q.Outcome || q.Cause != "" && e.Cause != q.Cause ||
			q.Manifest != "" && !strings.HasSuffix(e.Manifest, q.Manifest) || q.RunID != "" && e.RunID != q.RunID || q.Before > 0 && e.Seq >= q.Before ||
			!strings.Contains(e.Text+e.Resource+e.CorrelationID, q.Search)
	})
}

// Requests returns the requests.
func (f *Fleet) Requests() []view.RequestRow { return f.get().Requests }

// Request returns a request with the nodes that did not answer.
func (f *Fleet) Request(id string, run bool) (view.RequestDetail, bool) {
	d := f.get()
	at := slices.IndexFunc(d.Requests, func(r view.RequestRow) bool { return r.ID == id && r.IsRun() == run })
	if at < 0 {
		return view.RequestDetail{}, false
	}
	out := view.RequestDetail{Progress: d.Progress, RequestRow: d.Requests[at], Missing: d.Missing[id]}
	out.SameID = slices.ContainsFunc(d.Requests, func(r view.RequestRow) bool { return r.ID == id && r.IsRun() != run })
	if out.Nodes == 0 {
		out.Unknown = "the sender did not say how many nodes it asked"
	}

	return out, true
}

// Changes returns a channel that receives when the fleet was changed.
func (f *Fleet) Changes() (changed <-chan struct{}, cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := make(chan struct{}, 1)
	f.watchers[w] = true

	return w, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, w)
	}
}

// Follow returns a channel that receives nothing.
func (f *Fleet) Follow(view.EventQuery) (events <-chan view.Event, cancel func()) {
	return make(chan view.Event), func() {}
}

// Run returns a run with its transactions.
func (f *Fleet) Run(_ context.Context, node, id string) (view.RunDetail, error) {
	d := f.get()
	run, ok := d.Details[node+"/"+id]

	return found(run, ok, d.Err)
}

// Answers returns the answers to a request.
func (f *Fleet) Answers(_ context.Context, r view.RequestDetail) (view.Answers, error) {
	d := f.get()

	return view.Answers{Answers: d.Answers[r.ID]}, d.Err
}

// Facts returns the facts of a node.
func (f *Fleet) Facts(_ context.Context, node string) (json.RawMessage, error) {
	d := f.get()
	facts, ok := d.Facts[node]

	return found(facts, ok, d.Err)
}

// History returns the revisions of a key.
func (f *Fleet) History(_ context.Context, key string) ([]model.Entry, error) {
	d := f.get()
	all, ok := d.Revisions[key]

	return found(all, ok, d.Err)
}

func found[T any](v T, ok bool, err error) (T, error) {
	if err == nil && !ok {
		err = fmt.Errorf("nothing is stored: %w", model.ErrNotFound)
	}

	return v, err
}

// Assigned returns the revisions of assignments. An assignment without revisions has one.
func (f *Fleet) Assigned(context.Context) ([]model.Entry, bool, error) {
	d := f.get()
	var out []model.Entry
	for _, all := range d.Revisions {
		out = append(out, all...)
	}
	for _, m := range f.Manifests() {
		for _, k := range m.Keys {
			if len(d.Revisions[k.Key]) == 0 {
				out = append(out, model.Entry{Key: k.Key, Revision: k.Revision, Time: k.Time, By: k.By})
			}
		}
	}
	slices.SortFunc(out, func(a, b model.Entry) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Revision, a.Revision)) })

	return out, false, d.Err
}

// Control returns what operators wrote about nodes.
func (f *Fleet) Control(context.Context) ([]model.Entry, bool, error) {
	d := f.get()

	return d.Control, d.MoreControl, d.Err
}

// Registrations returns the registrations.
func (f *Fleet) Registrations(context.Context) ([]registration.Registration, error) {
	d := f.get()

	return d.Registrations, d.Err
}

// Select returns the nodes that a target expression selects, all for an empty one.
func (f *Fleet) Select(on string) (targets.Selection, error) {
	d := f.get()
	if on == "" {
		return targets.Selection{Nodes: slices.Clone(d.Nodes), Known: len(d.Nodes)}, nil
	}
	e, err := targets.Compile(on)
	if err != nil {
		return targets.Selection{}, err
	}

	return targets.Selector{Statuses: fleet.NewAssigned(d.Entries).Statuses, Facts: d.facts}.Select(context.Background(), e, d.Nodes)
}

// State returns the state of a node, and whether it is known.
func (f *Fleet) State(name string) (model.Node, bool) {
	d := f.get()
	at := slices.IndexFunc(d.Nodes, func(n model.Node) bool { return n.Node == name })
	if at < 0 {
		return model.Node{}, false
	}

	return d.Nodes[at], true
}
