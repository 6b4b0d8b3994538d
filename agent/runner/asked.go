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

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// Requester receives the progress of a request for runs. Any goroutine may call its methods.
type Requester interface {
	// MayBegin returns an error if no run may begin any more. It is called again whenever a run has waited.
	MayBegin() error
	// Begin is called once, when the first run begins. End is called once, with the results of all manifests
	// by key, or with the reason why nothing ran. Neither is called if the agent stops before.
	Begin(ctx context.Context)
	End(ctx context.Context, runs []model.RequestedRun, err error)
}

// asked is a request that has not ended. Its methods are safe for concurrent use.
type asked struct {
	Requester
	id string
	// hard ends when runs must stop.
	hard context.Context

	mu      sync.Mutex
	began   bool
	waiting map[string]bool
	results []model.RequestedRun
}

func (a *asked) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began {
		a.began = true
		a.Begin(a.hard)
	}
}

// done records the result of a manifest. err is the reason why it did not run. If nothing ran, the
// request ends with the first such error.
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
		a.End(a.hard, nil, err)
		return
	}
	a.End(a.hard, a.results, nil)
}

// queue holds the requests that wait for the next run of a manifest.
type queue struct {
	all []*asked
	// scheduled reports whether the run is scheduled. It may still wait for its bundle.
	scheduled bool
}

// queues holds the queue of each manifest, by key.
type queues map[string]*queue

func (q queues) add(key string, a *asked) {
	if q[key] == nil {
		q[key] = &queue{}
	}
	q[key].all = append(q[key].all, a)
}

func (q queues) take(key string) (all []*asked) {
	if waiting := q[key]; waiting != nil {
		all = waiting.all
		delete(q, key)
	}

	return all
}

// errUnassigned rejects a request for a manifest that is not assigned to the node.
var errUnassigned = errors.New("not assigned to this node")

type candidate struct {
	key, name string
	state     model.ManifestState
	// active reports whether the manifest is active. applies is also true if only an error prevents
	// that. It is false if the condition of the manifest is false, if it expired, or if another manifest
	// of the same name overrides it.
	active, applies bool
}

func candidatesOf(view *desired.View) []candidate {
	states := view.States()
	out := make([]candidate, 0, len(states))
	for _, key := range slices.Sorted(maps.Keys(states)) {
		c := candidate{key: key, state: states[key], active: view.Active(key) != nil}
		_, c.name, _ = model.SplitKey(key)
		c.applies = c.active || c.state.Late != ""
		out = append(out, c)
	}

	return out
}

// selectCandidates returns the candidates with one of names. Without names it returns all that apply. If no
// candidate of a name applies, it returns all candidates of that name. It returns errUnassigned if a name
// has no candidate.
func selectCandidates(all []candidate, names []string) (selected []candidate, err error) {
	applies := map[string]bool{} // by name
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
			selected = append(selected, c)
		}
	}

	return selected, nil
}

// finish records a result of a request after the lock is released, because the end of a request is
// written to disk. The caller holds the lock.
func (m *Manifests) finish(a *asked, r model.RequestedRun, err error) {
	m.o.Running.After(func() { a.done(r, err) })
}

// Ask schedules runs of manifests. A manifest that runs now runs again afterwards. One run may answer
// several requests. hard ends when runs must stop.
func (m *Manifests) Ask(ctx, hard context.Context, r model.RunRequest, by Requester) {
	selected, err := selectCandidates(candidatesOf(m.view), r.Manifests)
	if err != nil || len(selected) == 0 {
		m.o.Running.After(func() { by.End(hard, nil, err) })
		return
	}
	a := &asked{Requester: by, id: r.ID, hard: hard, waiting: map[string]bool{}}
	for _, c := range selected {
		a.waiting[c.key] = true
	}
	var active []string
	for _, c := range selected {
		if c.active {
			active = append(active, c.key)
			continue
		}
		none := model.RequestedRun{Manifest: c.key, Revision: c.state.Seen, Outcome: model.OutcomeSkipped}
		var why error
		if c.state.Late != "" {
			why = errors.New(c.state.Late)
		}
		m.finish(a, none, why)
	}
	if r.Noop {
		m.predict(ctx, a, active)
		return
	}
	for _, key := range active {
		m.asked.add(key, a)
	}
}

// scheduleAsked schedules the requested runs that can begin now, and ends the requests that must not begin
// any more.
func (m *Manifests) scheduleAsked(now time.Time) {
	for key, q := range m.asked {
		q.all = slices.DeleteFunc(q.all, func(a *asked) bool { return m.isOver(key, a) })
		switch {
		case len(q.all) == 0:
			delete(m.asked, key)
		case !q.scheduled && !m.o.Running.Lanes.Has(key) && !now.Before(m.o.Running.Lanes.Next()):
			q.scheduled = true
			m.schedule.Ask(key, Wake{Cause: model.CauseRequest, At: now})
		}
	}
}

// isOver reports whether a request allows no further run. It ends such requests.
func (m *Manifests) isOver(key string, a *asked) bool {
	err := a.MayBegin()
	if err == nil && m.view.Active(key) == nil {
		err = errInactive
	}
	if err != nil {
		m.finish(a, model.RequestedRun{Manifest: key}, err)
	}

	return err != nil
}

// answer sends the result of a run to its requests. Without a summary, err is the reason.
func answer(key string, all []*asked, summary *model.Run, err error) {
	result := model.RequestedRun{Manifest: key}
	if summary != nil {
		result, err = requested(summary), nil
	}
	for _, a := range all {
		a.done(result, err)
	}
}

func requested(s *model.Run) model.RequestedRun {
	out := model.RequestedRun{Manifest: s.Manifest, Revision: s.Revision, RunID: s.RunID, Outcome: s.Outcome(), Noop: s.Noop, Counts: s.Counts}
	if len(s.Errors) > 0 {
		out.Error = bounds.Text(s.Errors[0])
	}

	return out
}

// prediction is a requested noop run of one manifest. It is reported and does not change the state of
// the manifest.
type prediction struct {
	*Manifests
	asked *asked
	key   string
	id    string
	lane  *Lane
	// version is the version that runs. release releases its bundle.
	version *desired.Version
	release func()
}

// predict starts noop runs of manifests, one after the other. The caller holds the lock.
func (m *Manifests) predict(ctx context.Context, a *asked, keys []string) {
	if len(keys) == 0 {
		return
	}
	p := &prediction{Manifests: m, asked: a, key: keys[0], id: ksuid.New().String()}
	p.version = m.view.Active(p.key)
	if p.version == nil {
		m.finish(a, model.RequestedRun{Manifest: p.key}, errInactive)
		m.predict(ctx, a, keys[1:])
		return
	}
	o := p.options()
	m.o.Running.Begin(Request, "", nil, func(lane *Lane) {
		p.lane = lane
		summary, err := p.run(ctx, o)
		if summary == nil && ctx.Err() != nil {
			return
		}
		answer(p.key, []*asked{a}, summary, err)
		m.o.Running.Do(func() { m.predict(ctx, a, keys[1:]) })
	})
}

func (p *prediction) options() engine.ReconcileOptions {
	o := options(p.asked.hard, p.o.Runner, p.key, p.version, true, model.CauseRequest, p.id)
	o.CorrelationID = p.asked.id
	o.Journal = p.sharedOf(p.key).journal
	conflicts := p.view.Conflicts(p.key)
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }

	return o
}

// run makes the run and reports it. The summary is nil if the run did not complete.
func (p *prediction) run(ctx context.Context, o engine.ReconcileOptions) (*model.Run, error) {
	summary, err := p.o.Runner.Run(ctx, p.lane, o, p.begin)
	defer p.o.Report.End(p.id)
	if p.release != nil {
		defer p.release()
	}
	if summary != nil {
		if err != nil {
			summary.Errors = append(summary.Errors, err.Error())
		}
		p.o.Report.Run(summary)
		LogRun(ctx, p.o.Log, summary)
		p.Ran(p.key, summary)
	}

	return summary, err
}

func (p *prediction) begin(ctx context.Context, _ engine.ReconcileOptions) (a Attempt, err error) {
	var v *desired.Version
	p.o.Running.Do(func() { v = p.view.Active(p.key) })
	if v == nil {
		return Attempt{}, errInactive
	}
	p.refresh(ctx, v, false)
	if err := p.asked.MayBegin(); err != nil {
		return Attempt{}, err
	}
	p.o.Running.Lock()
	defer p.o.Running.Unlock()
	if p.version = p.view.Active(p.key); p.version == nil {
		return Attempt{}, errInactive
	}
	a.Graph = p.version.Resolution.Graph
	if a.Blocked = p.o.Runner.Enter(p.lane, p.id, a.Graph); a.Blocked != nil {
		return a, nil
	}
	p.release = p.o.Set.Hold(p.version.Bundle)
	a.Options = p.options().Options
	a.Options.OnTransaction = func(t *model.Transaction) {
		LogTransaction(ctx, p.o.Log, t)
		p.o.Report.Transaction(t)
	}
	a.Began = func() error {
		p.asked.begin()
		return nil
	}

	return a, nil
}
