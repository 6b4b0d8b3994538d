package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
)

// Request asks for runs now.
type RunRequest struct {
	// ID is the correlation id of the runs.
	ID string
	// Names are those of the manifests, none for all.
	Names []string
	Noop  bool
	// MayBegin returns why nothing may be run for it any more. It is called again whenever a
	// run has waited.
	MayBegin func() error
	// Begin is called once, when the first run begins, End once, with what came of all
	// manifests, by key, or why nothing was run. They may be called from any goroutine, and
	// not at all where the agent ends before.
	Begin func()
	End   func(runs []model.RequestedRun, err error)
}

// asked is a request until its end. Its methods may be called from several goroutines.
type asked struct {
	RunRequest

	mu      sync.Mutex
	began   bool
	waiting map[string]bool
	results []model.RequestedRun
}

// begin notes that one of its runs begins.
func (a *asked) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began {
		a.began = true
		a.Begin()
	}
}

// done notes what came of a manifest. Err is why there was no run; of a request that nothing
// was run for, the first is that of all.
func (a *asked) done(r model.RequestedRun, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waiting[r.Manifest] {
		return
	}
	delete(a.waiting, r.Manifest)
	if err != nil {
		r.Outcome, r.Error = model.OutcomeNotRun, bounds.Text(err.Error())
	}
	a.results = append(a.results, r)
	if len(a.waiting) > 0 {
		return
	}
	slices.SortFunc(a.results, func(a, b model.RequestedRun) int { return cmp.Compare(a.Manifest, b.Manifest) })
	if err != nil && !slices.ContainsFunc(a.results, func(r model.RequestedRun) bool { return r.Outcome != model.OutcomeNotRun }) {
		a.End(nil, err)
		return
	}
	a.End(a.results, nil)
}

// queue are the requests that wait for the run of a manifest to begin.
type queue struct {
	all []*asked
	// scheduled is that the run was asked for: it may wait for its bundle.
	scheduled bool
}

// queues are those of the manifests, by key.
type queues map[string]*queue

// add adds a request that the next run of a manifest answers.
func (q queues) add(key string, a *asked) {
	if q[key] == nil {
		q[key] = &queue{}
	}
	q[key].all = append(q[key].all, a)
}

// take removes and returns the requests that the run of a manifest answers.
func (q queues) take(key string) (all []*asked) {
	if waiting := q[key]; waiting != nil {
		all = waiting.all
		delete(q, key)
	}

	return all
}

// errUnassigned is a request for what is not assigned to the node.
var errUnassigned = errors.New("not assigned to this node")

// candidate is a manifest that a request may be about.
type candidate struct {
	key, name string
	state     model.ManifestState
	// active is that it is run. It applies where it is, or would be but for what is wrong with it; else its condition
	// is false, it expired, or another one of its name overrides it.
	active, applies bool
}

// candidates returns what is assigned, by key.
func (m *Manifests) candidates() []candidate {
	states := m.view.States()
	out := make([]candidate, 0, len(states))
	for _, key := range slices.Sorted(maps.Keys(states)) {
		c := candidate{key: key, state: states[key], active: m.view.Active(key) != nil}
		_, c.name, _ = model.SplitKey(key)
		c.applies = c.active || c.state.Late != ""
		out = append(out, c)
	}

	return out
}

// askedFor returns those of the candidates that names are about, none of these for all: what applies, and of a name
// that was given something also where nothing of it applies. The error wraps errUnassigned where there is none of a name.
func askedFor(all []candidate, names []string) (about []candidate, err error) {
	applies := map[string]bool{} // by name, of those that there are
	for _, c := range all {
		applies[c.name] = applies[c.name] || c.applies
	}
	for _, name := range names {
		if _, known := applies[name]; !known {
			return nil, fmt.Errorf("%s: %w", name, errUnassigned)
		}
	}
	for _, c := range all {
		if len(names) == 0 && c.applies || slices.Contains(names, c.name) && (c.applies || !applies[c.name]) {
			about = append(about, c)
		}
	}

	return about, nil
}

// Ask runs manifests soon: one that is running is run once more after that. Runs that several
// ask for are one. hard ends when a run is broken off.
func (m *Manifests) Ask(ctx, hard context.Context, r RunRequest) {
	about, err := askedFor(m.candidates(), r.Names)
	if err != nil || len(about) == 0 {
		r.End(nil, err)
		return
	}
	a := &asked{RunRequest: r, waiting: map[string]bool{}}
	for _, c := range about {
		a.waiting[c.key] = true
	}
	var active []string
	for _, c := range about {
		if c.active {
			active = append(active, c.key)
			continue
		}
		none := model.RequestedRun{Manifest: c.key, Revision: c.state.Seen, Outcome: model.OutcomeSkipped}
		if late := c.state.Late; late != "" {
			a.done(none, errors.New(late))
		} else {
			a.done(none, nil)
		}
	}
	if r.Noop {
		m.predict(ctx, hard, a, active)
		return
	}
	for _, key := range active {
		m.asked.add(key, a)
	}
}

// scheduleAsked asks for the runs that requests wait for and that can begin now. One that must
// not begin any more is answered.
func (m *Manifests) scheduleAsked(now time.Time) {
	for key, q := range m.asked {
		q.all = slices.DeleteFunc(q.all, func(a *asked) bool { return m.isOver(key, a) })
		switch {
		case len(q.all) == 0:
			delete(m.asked, key)
		case !q.scheduled && !m.o.Running.Lanes.Has(key) && !now.Before(m.o.Running.Lanes.Next()):
			q.scheduled = true
			m.schedule.Ask(key, model.CauseRequest, now)
		}
	}
}

// isOver reports whether nothing is run for a request any more, and answers it then.
func (m *Manifests) isOver(key string, a *asked) bool {
	err := a.MayBegin()
	if err == nil && m.view.Active(key) == nil {
		err = errInactive
	}
	if err != nil {
		a.done(model.RequestedRun{Manifest: key}, err)
	}

	return err != nil
}

// begins notes that a run begins for the requests that waited for it.
func (r *run) begins() {
	for _, a := range r.asked {
		a.begin()
	}
}

// answer answers those who asked for a run. Of one that the agent's end stopped nothing is
// known yet.
func (r *run) answer(ctx context.Context, summary *model.Run, err error) {
	if summary == nil && ctx.Err() != nil {
		return
	}
	result := model.RequestedRun{Manifest: r.key}
	if summary != nil {
		result, err = requested(summary), nil
	}
	for _, a := range r.asked {
		a.done(result, err)
	}
}

// requested returns what came of a run.
func requested(s *model.Run) model.RequestedRun {
	out := model.RequestedRun{Manifest: s.Manifest, Revision: s.Revision, RunID: s.RunID, Outcome: s.Outcome(), Noop: s.Noop, Counts: s.Counts}
	if len(s.Errors) > 0 {
		out.Error = bounds.Text(s.Errors[0])
	}

	return out
}
