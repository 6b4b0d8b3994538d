package runner

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Sync reads the assignments and activates the result. It may wait for NATS and for templates while runs
// continue. Only one goroutine may call Sync and Handle.
func (m *Manifests) Sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync) {
	m.o.RenewFacts(ctx)
	in := m.inputNow()
	in.Entries, in.Sync = entries, sync
	result := m.o.Set.Sync(ctx, in)
	m.apply(ctx, result, func() { m.noteFacts(in.Facts, in.Now) })
	m.o.Set.RemoveBundles(ctx)
}

// Handle processes the messages of runs to the set of assignments.
func (m *Manifests) Handle(ctx context.Context) {
	result := m.o.Set.Handle(ctx, m.inputNow())
	if result.IsEmpty() {
		return
	}
	m.apply(ctx, result, func() {})
}

// apply activates the result of the assignments and reports it. also is called with the lock. Full runs
// begin after the reports are on disk, so that the report of an assignment precedes the reports of its run.
func (m *Manifests) apply(ctx context.Context, result desired.Result, also func()) {
	next := m.o.Set.View()
	m.o.Running.Do(func() {
		m.announcing = true
		m.put(ctx, result, next)
		also()
	})
	defer func() {
		m.o.Running.Do(func() { m.announcing = false })
		m.o.Wake()
	}()
	m.announce(ctx, result)
}

// put activates the result of the assignments. The caller holds the lock.
func (m *Manifests) put(ctx context.Context, result desired.Result, next *desired.View) {
	now := time.Now()
	m.view = next.After(m.view, result.Refreshed)
	m.o.Status.SetAssignments(m.view.States())
	for _, key := range result.Unassigned {
		m.unassign(ctx, key)
	}
	for _, key := range result.Deactivated {
		m.o.Log.InfoContext(ctx, "assignment deactivated", "manifest", key)
		m.checks.Remove(key)
		m.drift.Remove(key)
		m.o.Status.SetHealth(key, model.HealthCounts{})
	}
	for _, a := range result.Activated {
		m.activate(ctx, a, now)
	}
	for _, key := range result.Refreshed {
		m.checks.Cancel(key)
		m.follow(key, nil)
		m.schedule.Ask(key, model.CauseSchedule, now)
	}
	for _, key := range result.Restored {
		m.sharedOf(key).runsDamaged = true
		m.schedule.Resume(key, now)
	}
	for _, key := range m.view.Keys() {
		m.schedule.Within(key, m.interval(key))
		m.checks.ScheduleBy(key, now.Add(m.o.Config().HealthInterval.Std()))
	}
	retainRegistrations(m.o.Registrar, m.view)
	m.showWatches()
}

// inputNow is input for a caller without the lock.
func (m *Manifests) inputNow() (in desired.Input) {
	m.o.Running.Do(func() { in = m.input() })

	return in
}

// isDamaged reports whether the bundle of a version is damaged. The caller does not hold the lock.
func (m *Manifests) isDamaged(v *desired.Version) bool {
	var now desired.Version
	m.o.Running.Do(func() { now = *v })

	return now.Damaged()
}

// noteFacts schedules the manifests with expressions if the stable facts changed since its last call.
func (m *Manifests) noteFacts(facts desired.Facts, now time.Time) {
	before := m.stableFacts
	m.stableFacts = facts.Stable
	if before == "" || before == facts.Stable {
		return
	}
	for _, key := range m.view.Keys() {
		if v := m.view.Active(key); v != nil && !v.Resolution.Static {
			m.schedule.AskFor(key, Wake{Cause: model.CauseDrift, At: now})
		}
	}
}

// activate schedules the first run of a version.
func (m *Manifests) activate(ctx context.Context, a desired.Activation, now time.Time) {
	m.o.Runner.NoteChange(now)
	v := m.view.Active(a.Key)
	m.o.Report.Forget(a.Key) // the new version reports all its results
	m.checks.Activate(a.Key, v.Resolution.Resources)
	m.o.Status.Activate(a.Key)
	m.sharedOf(a.Key).late = nil
	m.follow(a.Key, nil)
	m.o.Log.InfoContext(ctx, "assignment activated", "manifest", a.Key, "revision", v.Entry.Revision, "digest", v.Digest, "resources", v.Resolution.Graph.Len())
	cause := model.CauseManifest
	if a.Applied {
		cause = model.CauseSchedule // what differs now is drift
		recallRegistrations(m.o.Registrar, a.Key, v, m.paused, m.o.Config().HealthInterval > 0)
	}
	m.schedule.Ask(a.Key, cause, now)
}

// unassign forgets a manifest that is no longer assigned.
func (m *Manifests) unassign(ctx context.Context, key string) {
	m.o.Log.InfoContext(ctx, "assignment removed", "manifest", key)
	m.o.Runner.NoteChange(time.Now())
	m.checks.Remove(key)
	m.drift.Remove(key)
	m.schedule.Forget(key)
	m.o.Report.Forget(key)
	m.forget(ctx, key)
}

// refresh resolves a version again if its inputs may have changed. If that fails, the former resolution
// stays active. waited reports that another process delayed the run. The caller does not hold the lock.
func (m *Manifests) refresh(ctx context.Context, v *desired.Version, waited bool) {
	var in desired.Input
	var before desired.Version
	var conflicts func([]*resource.Resource) model.Problems
	valid := true
	m.o.Running.Do(func() {
		in = m.input()
		if waited {
			in.Changes++ // the other process may have changed anything
		}
		if valid = v.Resolution.Use(in); !valid {
			before, conflicts = *v, m.view.Conflicts(v.Entry.Key)
		}
	})
	if valid || before.Damaged() {
		return
	}
	fresh, err := m.o.Set.Resolve(ctx, before, in)
	if err == nil {
		err = conflicts(fresh.Resources).Err()
	}
	if ctx.Err() != nil {
		return
	}
	m.o.Running.Do(func() {
		if err == nil && m.view.Active(v.Entry.Key) == v {
			fresh.Use(in)
			v.Resolution = fresh
			m.follow(v.Entry.Key, m.sharedOf(v.Entry.Key).late)
			m.showWatches()
		}
	})
	m.o.Set.Resolved(v, fresh, err)
}
