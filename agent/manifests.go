package agent

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/health"
	"github.com/musterfleet/muster/agent/pace"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/repairs"
	"github.com/musterfleet/muster/agent/reporter"
	"github.com/musterfleet/muster/agent/runs"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/journal"
	"github.com/musterfleet/muster/resources/host"
)

// manifests are the manifests of the node: what is assigned, and what is made of
// it. The loop touches them, and the runs in hand, in turn.
type manifests struct {
	running   *runs.Running
	set       *assignments.Set
	health    *health.Monitor
	repairs   *repairs.Repairs
	registrar *registrar.Registrar
	schedule  *schedule.Schedule
	runner    *runs.Runner
	report    *reporter.Reporter
	status    *status.Node
	// shown is what administrators are shown of runs.
	shown  *status.Runs
	host   *host.Host
	config func() Config
	// facts returns them as they are known; renewFacts gathers them again when a fact file
	// changed since.
	facts      func() assignments.Facts
	renewFacts func(ctx context.Context)
	// kept is what the runs of a manifest leave for the next ones, by key.
	kept map[string]*kept
	// ran counts a run, nil where nobody counts.
	ran func(key string, run *model.Run)
	log *slog.Logger
}

// kept is what the runs of a manifest leave for the next ones.
type kept struct {
	journal *journal.Shared
	pace    pace.Pace
}

// keptOf returns what the runs of a manifest left.
func (m *manifests) keptOf(key string) *kept {
	k := m.kept[key]
	if k == nil {
		k = &kept{journal: journal.NewShared(journal.NewFile(m.host, m.config().StateDir, key))}
		m.kept[key] = k
	}

	return k
}

// input returns what assignments are judged by now.
func (m *manifests) input() assignments.Input {
	c := m.config()

	return assignments.Input{
		Families: model.Families(c.Node, c.Groups), Facts: m.facts(), Changes: m.runner.Changes(),
		MaxDepth: c.MaxDepth, Interval: c.Interval.Std(), Now: time.Now(),
	}
}

// interval returns how often a manifest runs.
func (m *manifests) interval(key string) time.Duration {
	if v := m.set.Active(key); v != nil && v.Resolution.Interval > 0 {
		return v.Resolution.Interval
	}

	return m.config().Interval.Std()
}

// sync looks at the assignments again: what holds now is active after it.
func (m *manifests) sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync, now time.Time) {
	m.renewFacts(ctx)
	in := m.input()
	in.Entries, in.Sync, in.Now = entries, sync, now
	result := m.set.Sync(ctx, in)
	for _, key := range result.Unassigned {
		m.unassign(ctx, key)
	}
	for _, key := range result.Deactivated {
		m.log.InfoContext(ctx, "assignment deactivated", "manifest", key)
		m.health.Remove(key)
		m.repairs.Unfollow(key)
		m.status.SetHealth(key, model.HealthCounts{})
	}
	for _, a := range result.Activated {
		m.activate(ctx, a, now)
	}
	for _, key := range result.Refreshed {
		m.health.Cancel(key)
		m.follow(key, nil)
		m.schedule.Ask(key, model.CauseSchedule, now)
	}
	keys := m.set.Keys()
	for _, key := range keys {
		m.schedule.Within(key, m.interval(key))
		m.health.ScheduleBy(key, now.Add(m.config().HealthInterval.Std()))
	}
	m.status.SetAssignments(m.set.States())
	m.reportResult(ctx, result)
	m.retainRegistrations(keys)
}

// activate asks for the run of a version that became active.
func (m *manifests) activate(ctx context.Context, a assignments.Activation, now time.Time) {
	m.runner.NoteChange(now)
	v := m.set.Active(a.Key)
	m.report.Forget(a.Key) // what is active now reports all its results
	m.health.Activate(a.Key, v.Resolution.Resources)
	m.repairs.Forget(a.Key)
	m.follow(a.Key, nil)
	m.log.InfoContext(ctx, "assignment activated", "manifest", a.Key, "revision", v.Entry.Revision, "digest", v.Digest, "resources", v.Resolution.Graph.Len())
	cause := model.CauseManifest
	if a.Applied {
		cause = model.CauseSchedule // what differs now is drift
		m.recallRegistrations(a.Key, v)
	}
	m.schedule.Ask(a.Key, cause, now)
}

// unassign forgets a manifest that is not assigned to the node any more.
func (m *manifests) unassign(ctx context.Context, key string) {
	m.log.InfoContext(ctx, "assignment removed", "manifest", key)
	m.runner.NoteChange(time.Now())
	m.health.Remove(key)
	m.repairs.Unfollow(key)
	m.repairs.Forget(key)
	m.schedule.Forget(key)
	m.report.Forget(key)
	m.forgetRuns(ctx, key)
}

// forgetRuns forgets what the runs of a manifest left, unless one is still in hand, which
// does that at its end.
func (m *manifests) forgetRuns(ctx context.Context, key string) {
	m.shown.Forget(key)
	if err := m.keptOf(key).journal.Reset(ctx); err != nil {
		m.log.ErrorContext(ctx, "cannot remove pending refreshes", "manifest", key, "error", err)
	}
	delete(m.kept, key)
}

// reportResult reports what came of the assignments.
func (m *manifests) reportResult(ctx context.Context, result assignments.Result) {
	for _, key := range result.Unassigned {
		m.report.Node(key, model.NodeUnassigned, key+" is not assigned any more; whatever it made is left as it is")
	}
	for _, p := range result.Postponed {
		m.reportPostponed(ctx, p)
	}
	for _, r := range result.Rejected {
		m.reportRejected(ctx, r)
	}
}

func (m *manifests) reportRejected(ctx context.Context, r assignments.Rejection) {
	run := m.runner.Unmade(r.Entry, model.DigestOf(r.Entry.Value), model.CauseManifest)
	run.Refused = true
	for _, p := range r.Problems.Sorted() {
		run.Errors = append(run.Errors, p.Error())
	}
	m.log.ErrorContext(ctx, "assignment rejected", "manifest", r.Entry.Key, "revision", r.Entry.Revision, "problems", len(run.Errors), "active", r.Remaining)
	m.report.Run(run)
	for _, problem := range run.Errors {
		m.log.ErrorContext(ctx, problem)
	}
	// Most problems begin with the key, as their place.
	reason := bounds.Problems(r.Problems)
	if !strings.HasPrefix(reason, r.Entry.Key+":") {
		reason = r.Entry.Key + ": " + reason
	}
	m.report.Node("", model.NodeRefused, reason+"; "+r.Remaining)
}

func (m *manifests) reportPostponed(ctx context.Context, p assignments.Postponement) {
	level := slog.LevelDebug
	if p.New {
		level = slog.LevelWarn
		run := m.runner.Unmade(p.Entry, model.DigestOf(p.Entry.Value), model.CauseManifest)
		run.Errors = []string{p.Err.Error()}
		m.report.Run(run)
	}
	m.log.Log(ctx, level, "assignment not ready, will retry", "manifest", p.Entry.Key, "revision", p.Entry.Revision, "error", p.Err, "retry", time.Until(p.Retry).Round(time.Second))
}

// refresh resolves a manifest again when what it reads may have changed.
func (m *manifests) refresh(ctx context.Context, key string, waited bool) {
	result := m.set.Refresh(ctx, key, m.input(), waited)
	m.status.SetAssignments(m.set.States())
	m.reportResult(ctx, result)
}

// say logs a message of a manifest.
func (m *manifests) say(ctx context.Context, message string) {
	if message != "" {
		m.log.InfoContext(ctx, message)
	}
}

// noteHealth takes over the health checks of a transaction, and reports
// those that changed.
func (m *manifests) noteHealth(ctx context.Context, key string, t *model.Transaction) {
	for _, c := range m.health.Note(key, t) {
		level := slog.LevelWarn
		if c.Result.Status == model.HealthOK {
			level = slog.LevelInfo
		}
		m.log.Log(ctx, level, "health check "+string(c.Result.Status), "manifest", t.Manifest, "resource", t.Ref().String(), "check", c.Result.Name, "was", cmp.Or(c.Was, "nothing"), "output", bounds.Text(c.Result.Output))
		m.report.Health(t, c.Was, c.Result)
	}
}

// conclude reports a run and remembers what came of it. One that looked because
// something had happened, and found nothing, is none, unless the manifest failed before.
func (m *manifests) conclude(ctx context.Context, key string, s *model.Run) {
	m.status.SetNoop(key, m.repairs.Differing(key))
	if isLook(s) && !m.status.SetPart(key, s) {
		m.shown.Conclude(key, s)
		return
	}
	m.report.Run(s)
	runs.LogRun(ctx, m.log, s)
	// Together, so that who asks for the status is told the same by both.
	m.status.SetRun(key, s)
	m.shown.Conclude(key, s)
	if m.ran != nil {
		m.ran(key, s)
	}
	if m.schedule.Conclude(key, s.Cause, s.Outcome()) {
		m.set.Applied(ctx, key)
	}
}

// recallRegistrations registers what an earlier process did and no run comes to
// unless one is asked for. What has health checks waits for them.
func (m *manifests) recallRegistrations(key string, v *assignments.Version) {
	for _, res := range v.Resolution.Resources {
		meta, from := res.Meta(), registrar.Source{Manifest: key, Resource: res.Ref()}
		unchanged := v.Noop || meta.Noop || res.Scope.Noop || res.Scope.HealthCheckOnly || res.Excluded != ""
		if unchanged || meta.Drift != model.DriftReport && meta.Drift != model.DriftIgnore {
			continue
		}
		m.registrar.Set(from, meta.RegisterWhenStable)
		if len(meta.HealthChecks) > 0 && m.config().HealthInterval > 0 {
			m.registrar.Deregister(from)
		}
	}
}

// retainRegistrations ends the registrations of what is not active any more.
func (m *manifests) retainRegistrations(keys []string) {
	active, open := map[registrar.Source]bool{}, map[string]bool{}
	for _, key := range keys {
		refs, more := m.set.Active(key).Registers()
		open[key] = more
		for _, ref := range refs {
			active[registrar.Source{Manifest: key, Resource: ref}] = true
		}
	}
	m.registrar.Retain(func(s registrar.Source) bool { return active[s] || open[s.Manifest] })
}
