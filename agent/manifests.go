package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/assignments"
	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/health"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/repairs"
	"github.com/musterfleet/muster/agent/reporter"
	"github.com/musterfleet/muster/agent/schedule"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// manifests are the manifests of the node: what is assigned, and what is made of
// it. Only the loop touches them.
type manifests struct {
	set       *assignments.Set
	health    *health.Monitor
	repairs   *repairs.Repairs
	registrar *registrar.Registrar
	schedule  *schedule.Schedule
	runner    *runner
	report    *reporter.Reporter
	status    *status.Node
	// ran counts a run, nil where nobody counts.
	ran func(key string, run *model.Run)
	log *slog.Logger
}

// input returns what assignments are judged by now.
func (m *manifests) input() assignments.Input {
	c := m.runner.config.get()

	return assignments.Input{
		Families: model.Families(c.Node, c.Groups), Facts: m.runner.facts.now(), Changes: m.runner.changes,
		MaxDepth: c.MaxDepth, Interval: c.Interval.Std(), Now: time.Now(),
	}
}

// interval returns how often a manifest runs.
func (m *manifests) interval(key string) time.Duration {
	if v := m.set.Active(key); v != nil && v.Resolution.Interval > 0 {
		return v.Resolution.Interval
	}

	return m.runner.config.get().Interval.Std()
}

// sync looks at the assignments again: what holds now is active after it.
func (m *manifests) sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync, now time.Time) {
	m.runner.facts.renew(ctx, m.runner.config.get().FactsDir)
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
		m.health.ScheduleBy(key, now.Add(m.runner.config.get().HealthInterval.Std()))
	}
	m.status.SetAssignments(m.set.States())
	m.reportResult(ctx, result)
	m.retainRegistrations(keys)
}

// activate asks for the run of a version that became active.
func (m *manifests) activate(ctx context.Context, a assignments.Activation, now time.Time) {
	m.runner.changedAt = now
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
	m.runner.changedAt = time.Now()
	m.health.Remove(key)
	m.repairs.Unfollow(key)
	m.repairs.Forget(key)
	m.schedule.Forget(key)
	m.report.Forget(key)
	m.runner.runs.Forget(key)
	if err := m.runner.journal(key).Reset(ctx); err != nil {
		m.log.ErrorContext(ctx, "cannot remove pending refreshes", "manifest", key, "error", err)
	}
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
	run := m.runner.unmade(r.Entry, model.DigestOf(r.Entry.Value), model.CauseManifest)
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
		run := m.runner.unmade(p.Entry, model.DigestOf(p.Entry.Value), model.CauseManifest)
		run.Errors = []string{p.Err.Error()}
		m.report.Run(run)
	}
	m.log.Log(ctx, level, "assignment not ready, will retry", "manifest", p.Entry.Key, "revision", p.Entry.Revision, "error", p.Err, "retry", time.Until(p.Retry).Round(time.Second))
}

// runNext runs the first manifest that is due, and reports whether there was one.
func (m *manifests) runNext(ctx, hard context.Context, now time.Time) bool {
	key, w := m.schedule.Take(m.set.Keys(), now)
	if key == "" {
		return false
	}
	if m.set.AwaitsBundle(ctx, key) {
		m.schedule.Postpone(key, w)
		m.status.SetAssignments(m.set.States())
		return true
	}
	summary := m.run(ctx, hard, key, &w)
	if w.Part == nil {
		m.schedule.Ran(key, m.interval(key), summary == nil || m.hasBegun(key, summary))
	}

	return true
}

// hasBegun reports whether a run came to a resource, and failed by no damage of its
// bundle, which another one repairs.
func (m *manifests) hasBegun(key string, s *model.Run) bool {
	if s.Outcome() == model.OutcomeFailed && m.set.Active(key).Damaged() {
		return false
	}

	return len(s.Errors) == 0 || s.Counts.Total > s.Counts.NotRun
}

// run reconciles a manifest, or a part of it, and reports. The summary is nil when the
// agent stops before it began. A wake for a part becomes one for the whole manifest
// where there is no such part.
func (m *manifests) run(ctx, hard context.Context, key string, w *schedule.Wake) *model.Run {
	if w.Part == nil {
		m.health.Cancel(key) // the run makes the checks itself
	}
	id := ksuid.New().String()
	defer m.report.End(id)
	var late []*resource.Resource
	o := m.options(hard, key, w.Cause, id)
	o.JournalOf = key
	o.Locked = func(ctx context.Context, o *reconcile.Options) (*graph.Graph, error) {
		if w.Part == nil || o.Waited {
			m.refresh(ctx, key, o.Waited)
		}
		g := m.graph(key, w)
		journal := o.Journal
		o.Options = m.runOptions(ctx, hard, key, *w, id, &late).Options
		o.Journal = journal
		if w.Part != nil {
			o.Earlier = plan.Standing(g, m.repairs.Failed(key))
			return g, context.Cause(ctx)
		}
		m.say(ctx, m.set.Active(key).Resolution.PreMessage)

		return g, context.Cause(ctx)
	}
	summary, err := m.runner.run(ctx, m.set.Active(key).Resolution.Graph, o)
	v := m.set.Active(key)
	if summary == nil {
		if ctx.Err() != nil {
			return nil // it never began, and is not tried again
		}
		summary = m.runner.unmade(v.Entry, v.Digest, w.Cause)
		summary.RunID = id
		err = fmt.Errorf("the run did not come to its end: %w", err)
	} else if w.Part == nil {
		m.say(ctx, v.Resolution.PostMessage)
	}
	if err != nil {
		summary.Errors = append(summary.Errors, err.Error())
	}
	if len(late) > 0 {
		m.follow(key, late)
	}
	if w.Part == nil {
		m.retainRegistrations(m.set.Keys())
	}
	if w.Part == nil || w.Cause == model.CauseHealth || summary.Counts.HealthChecks != (model.HealthCounts{}) {
		if due, part := m.health.ConcludeRun(key, w.Cause, v.Resolution.Resources); due {
			m.schedule.AskPart(key, model.CauseHealth, time.Now(), part)
		}
	}
	m.status.SetHealth(key, m.health.Counts(key))
	if w.Part != nil {
		m.concludePart(ctx, key, summary)
	} else {
		m.conclude(ctx, key, summary)
	}

	return summary
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

// runOptions are those of a run of a manifest. Resources that it finds are added to
// late.
func (m *manifests) runOptions(ctx, hard context.Context, key string, w schedule.Wake, id string, late *[]*resource.Resource) reconcile.Options {
	o := m.options(hard, key, w.Cause, id)
	v := m.set.Active(key)
	o.Woken, o.Refresh = w.At, m.health.TakeRefresh(key)
	o.Admit = func(found []*resource.Resource) error {
		if problems := m.set.Conflicts(key)(found); len(problems) > 0 {
			return problems
		}
		v.Resolution.AddLate(found)
		*late = append(*late, found...)
		return nil
	}
	o.Register = func(ref model.Ref, entries []model.RegisterEntry) {
		m.registrar.Set(registrar.Source{Manifest: key, Resource: ref}, entries)
	}
	o.OnTransaction = func(t *model.Transaction) {
		m.runner.logTransaction(ctx, t)
		if w.Part == nil {
			m.runner.runs.Note(id, t)
		} else {
			m.runner.runs.Update(key, t)
		}
		m.report.Transaction(t)
		m.repairs.Note(ctx, key, w.Part, t)
		if ctx.Err() == nil { // else its checks were broken off
			m.noteHealth(ctx, key, t)
		}
	}
	o.Left = func(ref model.Ref, state resource.State) { m.repairs.Left(key, ref, state) }
	if w.Part == nil {
		run, every := m.schedule.Begin(key), m.runner.config.get().ReadAllEvery
		o.ReadAll = every > 0 && run%every == 0
	}

	return o
}

// options are those that runs and health check passes of a manifest have in
// common.
func (m *manifests) options(hard context.Context, key string, cause model.Cause, id string) reconcile.Options {
	v := m.set.Active(key)
	o := m.runner.options(hard, id, v.Noop)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), m.runner.loader.Origin(v.Resolution.Resolved)
	o.Secrets, o.FailOnError = v.Resolution.Secrets, v.Resolution.FailOnError
	o.Manifest, o.Revision, o.Digest, o.Cause = key, v.Entry.Revision, v.Digest, cause

	return o
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
	m.runner.runs.Conclude(key, s)
	if isLook(s) && !m.status.SetPart(key, s) {
		return
	}
	m.report.Run(s)
	m.runner.logRun(ctx, s)
	m.status.SetRun(key, s)
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
		if len(meta.HealthChecks) > 0 && m.runner.config.get().HealthInterval > 0 {
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
