package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/lanes"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/runs"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// runNext begins the first run of a manifest that is due, and reports whether there was
// one.
func (m *manifests) runNext(ctx, hard context.Context, now time.Time) bool {
	key, w := m.schedule.Take(m.set.Keys(), now, func(key string, part bool) bool {
		if part {
			return m.running.Lanes.MayAddPart(key)
		}
		return !m.running.Lanes.Has(key) && !now.Before(m.running.Lanes.Next())
	})
	if key == "" {
		return false
	}
	if m.set.AwaitsBundle(ctx, key) {
		m.schedule.Postpone(key, w)
		m.status.SetAssignments(m.set.States())
		return true
	}
	kind := lanes.Part
	if w.Part == nil {
		kind = lanes.Manifest
		m.health.Cancel(key) // the run makes the checks itself
	}
	r := &manifestRun{manifests: m, hard: hard, key: key, wake: w, id: ksuid.New().String()}
	o := m.options(hard, key, w.Cause, r.id)
	m.running.Begin(kind, key, func(lane *lanes.Lane) { r.run(ctx, lane, o) })

	return true
}

// manifestRun is a run of a manifest, or of a part of it.
type manifestRun struct {
	*manifests
	hard context.Context
	key  string
	wake schedule.Wake
	id   string
	lane *lanes.Lane
	// version is what runs, nil before the run has begun; release ends that it is kept.
	version *assignments.Version
	release func()
	// late are resources that the run found.
	late []*resource.Resource
}

// errInactive is a run of a manifest that is not active any more when it is its turn.
var errInactive = errors.New("the manifest is not active any more")

// run reconciles a manifest, or a part of it, and reports. A wake for a part becomes one
// for the whole manifest where there is no such part.
func (r *manifestRun) run(ctx context.Context, lane *lanes.Lane, o reconcile.Options) {
	r.lane = lane
	o.Locked = func(ctx context.Context, o *reconcile.Options) (*graph.Graph, error) {
		waited := o.Waited
		return r.runner.Await(ctx, r.id, lane, func() (*graph.Graph, error) {
			defer func() { waited = false }()
			return r.prepare(ctx, waited)
		}, func(g *graph.Graph) { r.begun(ctx, o, g) })
	}
	summary, err := r.runner.Run(ctx, nil, o)
	r.running.Lock()
	defer r.running.Unlock()
	defer r.report.End(r.id)
	if r.release != nil {
		defer r.release()
	}
	r.end(ctx, summary, err)
}

// prepare returns what runs, which is resolved again where what it reads may have changed.
// waited is that another process held the run up.
func (r *manifestRun) prepare(ctx context.Context, waited bool) (*graph.Graph, error) {
	if r.set.Active(r.key) == nil {
		return nil, errInactive
	}
	if r.wake.Part == nil || waited {
		r.refresh(ctx, r.key, waited)
	}

	return r.graph(r.key, &r.wake), nil
}

// begun completes the options of a run that begins.
func (r *manifestRun) begun(ctx context.Context, o *reconcile.Options, g *graph.Graph) {
	r.version = r.set.Active(r.key)
	r.release = r.set.Hold(r.version.Bundle)
	o.Options = r.engineOptions(ctx)
	if r.wake.Part != nil {
		o.Earlier = plan.Standing(g, r.repairs.Failed(r.key))
		return
	}
	r.say(ctx, r.version.Resolution.PreMessage)
}

// isCurrent reports whether what runs is still active.
func (r *manifestRun) isCurrent() bool {
	return r.version != nil && r.set.Active(r.key) == r.version
}

// engineOptions are those of the engine. What it calls takes the turn.
func (r *manifestRun) engineOptions(ctx context.Context) engine.Options {
	o := r.options(r.hard, r.key, r.wake.Cause, r.id)
	v := r.version
	o.Woken, o.Refresh, o.Journal = r.wake.At, r.health.TakeRefresh(r.key), r.keptOf(r.key).journal
	o.Admit = func(found []*resource.Resource) error {
		r.running.Lock()
		defer r.running.Unlock()
		if problems := r.set.Conflicts(r.key)(found); len(problems) > 0 {
			return problems
		}
		v.Resolution.AddLate(found)
		r.late = append(r.late, found...)
		return nil
	}
	o.Register = func(ref model.Ref, entries []model.RegisterEntry) {
		r.running.Lock()
		defer r.running.Unlock()
		if r.isCurrent() {
			r.registrar.Set(registrar.Source{Manifest: r.key, Resource: ref}, entries)
		}
	}
	o.OnTransaction = func(t *model.Transaction) { r.note(ctx, t) }
	o.Limit = func(res *resource.Resource) time.Time {
		r.running.Lock()
		defer r.running.Unlock()
		return r.keptOf(r.key).pace.Take(res.Ref(), v.Resolution.Limit, res.Meta().Limit, time.Now())
	}
	o.Left = func(ref model.Ref, state resource.State) {
		r.running.Lock()
		defer r.running.Unlock()
		r.repairs.Left(r.key, ref, state)
	}
	if r.wake.Part == nil {
		run, every := r.schedule.Begin(r.key), r.config().ReadAllEvery
		o.ReadAll = every > 0 && run%every == 0
	}

	return o.Options
}

// options are those that runs and health check passes of a manifest have in
// common.
func (m *manifests) options(hard context.Context, key string, cause model.Cause, id string) reconcile.Options {
	v := m.set.Active(key)
	o := m.runner.Options(hard, id, v.Noop)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), m.runner.Origin(v.Resolution.Resolved)
	o.Secrets, o.FailOnError = v.Resolution.Secrets, v.Resolution.FailOnError
	o.Manifest, o.Revision, o.Digest, o.Cause = key, v.Entry.Revision, v.Digest, cause

	return o
}

// note takes over what came of a resource.
func (r *manifestRun) note(ctx context.Context, t *model.Transaction) {
	runs.LogTransaction(ctx, r.log, t)
	r.running.Lock()
	defer r.running.Unlock()
	r.lane.Done(t.Ref())
	r.report.Transaction(t)
	if r.wake.Part == nil {
		r.shown.Note(r.id, t)
	}
	if !r.isCurrent() {
		return
	}
	if r.wake.Part != nil {
		r.shown.Update(r.key, t)
	}
	if r.wake.Part != nil && !t.Resumes.IsZero() {
		r.repairs.PutOff(r.key, t.Ref(), r.wake.At, t.Resumes)
	}
	r.repairs.Note(ctx, r.key, r.wake.Part, t)
	if ctx.Err() == nil { // else its checks were broken off
		r.noteHealth(ctx, r.key, t)
	}
}

// end takes over what came of the run, and reports it. There is no summary of one that did
// not come to its end. One that the agent stopped before it began is not tried again.
func (r *manifestRun) end(ctx context.Context, summary *model.Run, err error) {
	if r.version == nil {
		r.version = r.set.Active(r.key)
	}
	v := r.version
	if v == nil || summary == nil && (ctx.Err() != nil || errors.Is(err, errInactive)) {
		return
	}
	switch {
	case summary == nil:
		summary = r.runner.Unmade(v.Entry, v.Digest, r.wake.Cause)
		summary.RunID = r.id
		err = fmt.Errorf("the run did not come to its end: %w", err)
	case r.wake.Part == nil:
		r.say(ctx, v.Resolution.PostMessage)
	}
	if err != nil {
		summary.Errors = append(summary.Errors, err.Error())
	}
	if r.wake.Part == nil {
		r.retainRegistrations(r.set.Keys())
	}
	if !r.isCurrent() {
		r.concludeFormer(ctx, r.key, summary)
		return
	}
	if len(r.late) > 0 {
		r.follow(r.key, r.late)
	}
	if r.wake.Part == nil || r.wake.Cause == model.CauseHealth || summary.Counts.HealthChecks != (model.HealthCounts{}) {
		if due, part := r.health.ConcludeRun(r.key, r.wake.Cause, v.Resolution.Resources); due {
			r.schedule.AskPart(r.key, model.CauseHealth, time.Now(), part)
		}
	}
	r.status.SetHealth(r.key, r.health.Counts(r.key))
	if r.wake.Part != nil {
		r.concludePart(ctx, r.key, summary)
		return
	}
	r.conclude(ctx, r.key, summary)
	r.schedule.Ran(r.key, r.interval(r.key), r.hasBegun(r.key, summary))
	r.schedule.Resume(r.key, summary.Resumes)
}

// hasBegun reports whether a run came to a resource, and failed by no damage of its
// bundle, which another one repairs.
func (m *manifests) hasBegun(key string, s *model.Run) bool {
	if s.Outcome() == model.OutcomeFailed && m.set.Active(key).Damaged() {
		return false
	}

	return len(s.Errors) == 0 || s.Counts.Total > s.Counts.NotRun
}

// concludeFormer reports the run of a version that was replaced or removed meanwhile. What
// is active now has a run of its own.
func (m *manifests) concludeFormer(ctx context.Context, key string, s *model.Run) {
	m.shown.Conclude(key, s)
	m.report.Run(s)
	runs.LogRun(ctx, m.log, s)
	if m.ran != nil {
		m.ran(key, s)
	}
	if !m.set.Has(key) {
		m.forgetRuns(ctx, key)
	}
}
