package manifests

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/model"
)

// Sync looks at the assignments again: what holds now is active after it.
func (m *Manifests) Sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync, now time.Time) {
	m.renewFacts(ctx)
	in := m.input()
	in.Entries, in.Sync, in.Now = entries, sync, now
	result := m.set.Sync(ctx, in)
	for _, key := range result.Unassigned {
		m.unassign(ctx, key)
	}
	for _, key := range result.Deactivated {
		m.log.InfoContext(ctx, "assignment deactivated", "manifest", key)
		m.checks.Remove(key)
		m.repairs.Unfollow(key)
		m.status.SetHealth(key, model.HealthCounts{})
	}
	for _, a := range result.Activated {
		m.activate(ctx, a, now)
	}
	for _, key := range result.Refreshed {
		m.checks.Cancel(key)
		m.follow(key, nil)
		m.schedule.Ask(key, model.CauseSchedule, now)
	}
	for _, key := range m.set.Keys() {
		m.schedule.Within(key, m.interval(key))
		m.checks.ScheduleBy(key, now.Add(m.config().HealthInterval.Std()))
	}
	m.status.SetAssignments(m.set.States())
	m.announce(ctx, result)
	retainRegistrations(m.registrar, m.set)
}

// activate asks for the run of a version that became active.
func (m *Manifests) activate(ctx context.Context, a assignments.Activation, now time.Time) {
	m.runner.NoteChange(now)
	v := m.set.Active(a.Key)
	m.report.Forget(a.Key) // what is active now reports all its results
	m.checks.Activate(a.Key, v.Resolution.Resources)
	m.repairs.Forget(a.Key)
	m.follow(a.Key, nil)
	m.log.InfoContext(ctx, "assignment activated", "manifest", a.Key, "revision", v.Entry.Revision, "digest", v.Digest, "resources", v.Resolution.Graph.Len())
	cause := model.CauseManifest
	if a.Applied {
		cause = model.CauseSchedule // what differs now is drift
		recallRegistrations(m.registrar, a.Key, v, m.config().HealthInterval > 0)
	}
	m.schedule.Ask(a.Key, cause, now)
}

// unassign forgets a manifest that is not assigned to the node any more.
func (m *Manifests) unassign(ctx context.Context, key string) {
	m.log.InfoContext(ctx, "assignment removed", "manifest", key)
	m.runner.NoteChange(time.Now())
	m.checks.Remove(key)
	m.repairs.Unfollow(key)
	m.repairs.Forget(key)
	m.schedule.Forget(key)
	m.report.Forget(key)
	m.forget(ctx, key)
}

// refresh resolves a manifest again when what it reads may have changed.
func (m *Manifests) refresh(ctx context.Context, key string, waited bool) {
	result := m.set.Refresh(ctx, key, m.input(), waited)
	m.status.SetAssignments(m.set.States())
	m.announce(ctx, result)
}
