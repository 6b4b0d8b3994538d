package manifests

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/model"
)

// Sync looks at the assignments again: what holds now is active after it.
func (m *Manifests) Sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync, now time.Time) {
	m.o.RenewFacts(ctx)
	in := m.input()
	in.Entries, in.Sync, in.Now = entries, sync, now
	result := m.o.Set.Sync(ctx, in)
	for _, key := range result.Unassigned {
		m.unassign(ctx, key)
	}
	for _, key := range result.Deactivated {
		m.o.Log.InfoContext(ctx, "assignment deactivated", "manifest", key)
		m.checks.Remove(key)
		m.repairs.Unfollow(key)
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
	for _, key := range m.o.Set.Keys() {
		m.schedule.Within(key, m.interval(key))
		m.checks.ScheduleBy(key, now.Add(m.o.Config().HealthInterval.Std()))
	}
	m.noteFacts(in.Facts, now)
	m.o.Status.SetAssignments(m.o.Set.States())
	m.announce(ctx, result)
	retainRegistrations(m.o.Registrar, m.o.Set)
}

// noteFacts schedules a run of the manifests with expressions if the stable facts changed since the last call.
func (m *Manifests) noteFacts(facts assignments.Facts, now time.Time) {
	before := m.stableFacts
	m.stableFacts = facts.Stable
	if before == "" || before == facts.Stable {
		return
	}
	for _, key := range m.o.Set.Keys() {
		if v := m.o.Set.Active(key); v != nil && !v.Resolution.Static {
			m.schedule.AskFor(key, schedule.Wake{Cause: model.CauseDrift, At: now})
		}
	}
}

// activate asks for the run of a version that became active.
func (m *Manifests) activate(ctx context.Context, a assignments.Activation, now time.Time) {
	m.o.Runner.NoteChange(now)
	v := m.o.Set.Active(a.Key)
	m.o.Report.Forget(a.Key) // what is active now reports all its results
	m.checks.Activate(a.Key, v.Resolution.Resources)
	m.repairs.Forget(a.Key)
	m.keptOf(a.Key).late = nil
	m.follow(a.Key, nil)
	m.o.Log.InfoContext(ctx, "assignment activated", "manifest", a.Key, "revision", v.Entry.Revision, "digest", v.Digest, "resources", v.Resolution.Graph.Len())
	cause := model.CauseManifest
	if a.Applied {
		cause = model.CauseSchedule // what differs now is drift
		recallRegistrations(m.o.Registrar, a.Key, v, m.paused, m.o.Config().HealthInterval > 0)
	}
	m.schedule.Ask(a.Key, cause, now)
}

// unassign forgets a manifest that is not assigned to the node any more.
func (m *Manifests) unassign(ctx context.Context, key string) {
	m.o.Log.InfoContext(ctx, "assignment removed", "manifest", key)
	m.o.Runner.NoteChange(time.Now())
	m.checks.Remove(key)
	m.repairs.Unfollow(key)
	m.repairs.Forget(key)
	m.schedule.Forget(key)
	m.o.Report.Forget(key)
	m.forget(ctx, key)
}

// refresh resolves a manifest again when what it reads may have changed.
func (m *Manifests) refresh(ctx context.Context, key string, waited bool) {
	before, state := m.o.Set.Active(key).Resolution, m.o.Set.State(key)
	result := m.o.Set.Refresh(ctx, key, m.input(), waited)
	if m.o.Set.Active(key).Resolution != before {
		m.follow(key, m.keptOf(key).late)
	}
	if !result.IsEmpty() || m.o.Set.State(key) != state { // States is slow for thousands of manifests
		m.o.Status.SetAssignments(m.o.Set.States())
	}
	m.announce(ctx, result)
}
