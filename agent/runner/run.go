package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// RunNext starts the first run of a manifest that is due. It reports whether a run was due.
func (m *Manifests) RunNext(ctx, hard context.Context, now time.Time) bool {
	m.scheduleAsked(now)
	key, w := m.schedule.Take(m.view.Keys(), now, func(key string, part []model.Ref) ([]model.Ref, bool) {
		if part == nil {
			return nil, !m.announcing && m.mayRun(key) && !m.o.Running.Lanes.Has(key) && !now.Before(m.o.Running.Lanes.Next())
		}
		if m.mayRun(key) {
			part = m.o.Running.Lanes.Admitted(key, m.view.Active(key).Resolution.Graph, part)
			return part, len(part) > 0
		}
		return nil, false
	})
	if key == "" {
		return false
	}
	kind := Part
	r := &run{Manifests: m, hard: hard, key: key, wake: w, id: ksuid.New().String(), observes: m.paused, taken: map[model.Ref]time.Time{}}
	if w.Part == nil {
		kind, m.sharedOf(key).whole = Manifest, r
		if !r.observes {
			m.Checks.cancel(key) // the run makes the checks
			r.asked = m.asked.take(key)
		}
	}
	o := r.options(m.view.Active(key))
	m.o.Running.Begin(kind, key, w.Part, func(lane *Lane) { r.reconcile(ctx, lane, o) })

	return true
}

// run is a full or partial run of a manifest.
type run struct {
	*Manifests
	hard context.Context
	key  string
	wake Wake
	id   string
	// observes reports whether the node is paused: the run changes nothing.
	observes bool
	lane     *Lane
	// version is the version that runs, nil before the run begins. release releases its bundle.
	version *desired.Version
	release func()
	// record receives the results; it is nil before the run begins.
	record *status.Record
	late   []*resource.Resource
	// taken holds the times of the changes that the run counted against limits. gaveBack reports whether it
	// returned one.
	taken    map[model.Ref]time.Time
	gaveBack bool
	asked    []*asked
	// damaged reports whether the run failed and its bundle is damaged.
	damaged bool
	// runsDamaged reports whether the run begins even if its bundle is damaged.
	runsDamaged bool
}

// errPaused ends a run because the node was paused before the run began.
var errPaused = errors.New("the node is paused")

// errDamaged ends a run that must wait for another download of its bundle.
var errDamaged = errors.New("the bundle is damaged")

// errInactive ends a run of a manifest that became inactive before the run began.
var errInactive = errors.New("the manifest is not active any more")

// reconcile makes the run, reports it without the lock, and then records the outcome. So the report is
// on disk before the state shows the outcome. It concludes nothing if the agent stopped the run before it
// began, or if the manifest is no longer active.
func (r *run) reconcile(ctx context.Context, lane *Lane, o engine.ReconcileOptions) {
	r.lane = lane
	summary, err := r.o.Runner.Run(ctx, lane, o, r.begin)
	r.damaged = summary != nil && summary.Outcome() == model.OutcomeFailed && r.version != nil && r.isDamaged(r.version)
	failed := tasks.Guard(r.o.Log, "concluding the run of "+r.key, func() error {
		s, current := r.complete(ctx, summary, err)
		if s == nil {
			return nil
		}
		news := r.isNews(s, current)
		if news {
			r.o.Report.Run(s)
			LogRun(ctx, r.o.Log, s)
			r.Ran(r.key, s)
		}
		r.conclude(ctx, s, current, news)
		return nil
	})
	r.o.Report.End(r.id)
	r.o.Running.Do(func() {
		if r.release != nil {
			r.release()
		}
		if failed != nil && r.view.Active(r.key) != nil {
			r.schedule.Retry(r.key)
		}
	})
	if summary != nil || ctx.Err() == nil { // otherwise the agent stopped the run
		answer(r.key, r.asked, summary, err)
	}
}

// begin begins the run unless another run blocks it. It first resolves the version again if its inputs may
// have changed.
func (r *run) begin(ctx context.Context, o engine.ReconcileOptions) (Attempt, error) {
	for {
		v, err := r.next()
		if err != nil {
			return Attempt{}, err
		}
		if r.awaitsBundle(v) {
			return Attempt{}, errDamaged
		}
		if r.wake.Part == nil || o.Waited {
			r.refresh(ctx, v, o.Waited)
		}
		if a, isCurrent := r.enter(ctx, v); isCurrent {
			return a, nil
		}
		o.Waited = false
	}
}

// enter begins the run of a version unless another run blocks it. isCurrent is false if the version is no
// longer active or the node was paused.
func (r *run) enter(ctx context.Context, v *desired.Version) (a Attempt, isCurrent bool) {
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	if r.view.Active(r.key) != v || r.paused && !r.observes {
		return Attempt{}, false
	}
	a.Graph = r.graph(v)
	if a.Blocked = r.o.Runner.Enter(r.lane, r.id, a.Graph); a.Blocked != nil {
		return a, true
	}
	r.version, r.release = v, r.o.Set.Hold(v.Bundle)
	r.record = r.o.Status.Record(r.key, r.wake.Part == nil)
	a.Options = r.engineOptions(ctx)
	a.Began = func() error {
		for _, asked := range r.asked {
			asked.begin()
		}
		return nil
	}
	if r.wake.Part != nil {
		failed := r.record.Failed()
		a.Options.Prior = plan.HistoryForPartial(a.Graph, func(ref model.Ref) bool { return failed[ref] })
		return a, true
	}
	a.Options.AlreadyConverged = r.converged()
	r.say(ctx, v.Resolution.PreMessage)

	return a, true
}

func (r *run) next() (*desired.Version, error) {
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	v := r.view.Active(r.key)
	if v == nil {
		return nil, errInactive
	}
	if r.paused && !r.observes {
		return nil, errPaused
	}
	// A request can end while the run waits.
	if r.asked = slices.DeleteFunc(r.asked, func(a *asked) bool { return r.isOver(r.key, a) }); len(r.asked) == 0 && r.wake.Cause == model.CauseRequest {
		r.wake.Cause = model.CauseSchedule
	}

	return v, nil
}

// awaitsBundle reports whether the run must wait for another download of its damaged bundle.
func (r *run) awaitsBundle(v *desired.Version) bool {
	if v.Bundle == "" {
		return false
	}
	damaged := r.isDamaged(v)
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	k := r.sharedOf(r.key)
	r.runsDamaged, k.runsDamaged = r.runsDamaged || k.runsDamaged, false
	waits := damaged && !r.runsDamaged
	if waits {
		for _, a := range r.asked {
			r.Manifests.asked.add(r.key, a)
		}
		if len(r.asked) > 0 {
			r.Manifests.asked[r.key].scheduled = true
		}
		r.asked = nil
	}

	return waits
}

// graph returns the graph to run. A wake for a part that no longer exists becomes a wake for the whole
// manifest.
func (r *run) graph(v *desired.Version) *plan.Graph {
	g := v.Resolution.Graph
	if r.wake.Part != nil {
		if part, ok := g.Part(r.wake.Part); ok {
			return part
		}
		r.wake.Part = nil
	}

	return g
}

// converged reports whether a requested run converged a resource without drift repair. The caller holds
// the lock.
func (r *run) converged() func(model.Ref) bool {
	converged, out := r.record.Converged(), map[model.Ref]bool{}
	for _, res := range slices.Concat(r.version.Resolution.Resources, r.sharedOf(r.key).late) {
		// The next run may refresh a resource that subscribes.
		if meta := res.Meta(); len(meta.Subscribe) == 0 && (meta.Drift == model.DriftReport || meta.Drift == model.DriftIgnore) {
			out[res.Ref()] = converged[res.Ref()]
		}
	}

	return func(ref model.Ref) bool { return out[ref] }
}

func (r *run) say(ctx context.Context, message string) {
	if message != "" {
		r.o.Log.InfoContext(ctx, message)
	}
}

// isCurrent reports whether the version of the run is still active. The caller holds the lock.
func (r *run) isCurrent() bool {
	return r.version != nil && r.view.Active(r.key) == r.version
}

// engineOptions returns the options of the engine. The caller holds the lock; the callbacks take it.
func (r *run) engineOptions(ctx context.Context) engine.Options {
	v := r.version
	o := r.options(v)
	o.Woken, o.Journal = r.wake.At, r.sharedOf(r.key).journal
	if len(r.asked) > 0 {
		o.CorrelationID = r.asked[0].id
	}
	if !r.observes {
		o.Refresh = r.Checks.takeRefresh(r.key, r.wake.Part)
	}
	o.Admit = func(found []*resource.Resource) error {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		if problems := r.view.Conflicts(r.key)(found); len(problems) > 0 {
			return problems
		}
		v.AddLate(found)
		r.late = append(r.late, found...)
		return nil
	}
	o.Register = func(ref model.Ref, entries []model.RegisterEntry) {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		if r.isCurrent() {
			r.o.Registrar.Set(Source{Manifest: r.key, Resource: ref}, entries)
		}
	}
	o.OnTransaction = func(t *model.Transaction) { r.note(ctx, t) }
	o.Limit = func(res *resource.Resource) time.Time {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		now := time.Now()
		until := r.sharedOf(r.key).pace.Take(res.Ref(), v.Resolution.Limit, res.Meta().Limit, now)
		if until.IsZero() {
			r.taken[res.Ref()] = now
		}
		return until
	}
	o.DriftSince = func(ref model.Ref) time.Time {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		return r.drift.DriftSince(r.key, ref)
	}
	o.RecordOwnState = func(ref model.Ref, state resource.State) {
		if s, ok := state.(resource.Marker); ok {
			path, mark := s.Mark()
			r.o.Running.Do(func() { r.drift.Left(r.key, ref, path, mark) })
		}
	}
	if r.wake.Part == nil {
		run, every := r.schedule.Begin(r.key), r.o.Config().ReadAllEvery
		o.ReadAll = every > 0 && run%every == 0
	}

	return o.Options
}

func (r *run) options(v *desired.Version) engine.ReconcileOptions {
	return options(r.hard, r.o.Runner, r.key, v, v.Noop || r.observes, r.wake.Cause, r.id)
}

// options returns the options that runs and health check passes of a manifest share.
func options(hard context.Context, by *Runner, key string, v *desired.Version, noop bool, cause model.Cause, id string) engine.ReconcileOptions {
	o := by.Options(hard, id, noop)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), by.o.Origin(v.Resolution.Resolved)
	o.Secrets, o.FailOnError = v.Resolution.Secrets, v.Resolution.FailOnError
	o.Manifest, o.Revision, o.Digest, o.Cause = key, v.Entry.Revision, v.Digest, cause

	return o
}

func (r *run) note(ctx context.Context, t *model.Transaction) {
	LogTransaction(ctx, r.o.Log, t)
	r.o.Report.Transaction(t)
	r.record.Note(t, r.wake.Part == nil)
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	r.lane.Done(t.Ref())
	if !r.isCurrent() {
		return
	}
	if !t.RetryAt.IsZero() {
		var seen time.Time
		if r.wake.Part != nil {
			seen = r.wake.At
		}
		r.drift.PutOff(r.key, t.Ref(), seen, t.RetryAt)
	}
	if t.Outcome() == model.OutcomeStable {
		r.gaveBack = r.sharedOf(r.key).pace.GiveBack(t.Ref(), r.taken[t.Ref()]) || r.gaveBack
	}
	r.drift.Note(ctx, r.key, r.wake.Part, t, time.Now())
	if ctx.Err() == nil { // otherwise the checks were aborted
		r.Checks.note(ctx, r.key, t)
	}
}

// complete returns the summary of the run, nil if there is nothing to conclude. current reports whether
// the version of the run is active.
func (r *run) complete(ctx context.Context, s *model.Run, err error) (_ *model.Run, current bool) {
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	if k := r.shared[r.key]; k != nil && k.whole == r {
		k.whole = nil
	}
	if r.version == nil {
		r.version = r.view.Active(r.key)
	}
	if r.record == nil {
		r.record = r.o.Status.Record(r.key, false)
	}
	v := r.version
	switch {
	case v == nil || s == nil && (ctx.Err() != nil || errors.Is(err, errInactive)):
		return nil, false
	case errors.Is(err, errPaused):
		r.schedule.Ask(r.key, r.wake)
		return nil, false
	case errors.Is(err, errDamaged):
		r.schedule.Postpone(r.key, r.wake)
		r.o.Set.Restore(v)
		return nil, false
	case s == nil:
		s = r.o.Runner.Unmade(v.Entry, v.Digest, r.wake.Cause)
		s.RunID = r.id
		err = fmt.Errorf("the run did not come to its end: %w", err)
	case r.wake.Part == nil:
		r.say(ctx, v.Resolution.PostMessage)
	}
	s.Retry = r.wake.Retry
	if err != nil {
		s.Errors = append(s.Errors, err.Error())
	}

	return s, r.isCurrent()
}

// isNews reports whether the run is reported. A run that only checked for drift is not.
func (r *run) isNews(s *model.Run, current bool) bool {
	switch {
	case !current:
		return true
	case r.wake.Part == nil:
		return r.record.IsNews(s)
	default:
		return s.Cause != model.CauseDrift || len(s.Errors) > 0 || r.o.Report.News(s.RunID)
	}
}

// concludeHealth schedules a repair if health checks of the run are critical.
func (r *run) concludeHealth(s *model.Run) {
	// A repair that a limit delays is not a repair that did not help.
	putOff := r.wake.Cause == model.CauseHealth && !s.RetryAt.IsZero()
	if !putOff && !r.observes && (r.wake.Part == nil || r.wake.Cause == model.CauseHealth || s.Counts.HealthChecks != (model.HealthCounts{})) {
		by := byRun
		if r.wake.Cause == model.CauseHealth {
			by = byRepair
		}
		if due, part := r.Checks.conclude(r.key, by, r.version.Resolution.Resources); due {
			r.schedule.Ask(r.key, Wake{Cause: model.CauseHealth, At: time.Now(), Part: part})
		}
	}
	r.o.Status.SetHealth(r.key, r.Checks.of(r.key).counts())
}

// conclude records the outcome of the run. current reports whether its version was active before it was
// reported.
func (r *run) conclude(ctx context.Context, s *model.Run, current, news bool) {
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	if !current || !r.isCurrent() {
		r.concludeFormer(ctx, s)
		return
	}
	r.concludeHealth(s)
	if r.wake.Part == nil {
		r.concludeFull(s, news)
	} else {
		r.concludePart(s)
	}
	r.schedule.Resume(r.key, s.RetryAt) // a part is not in the next full run
	if r.gaveBack {
		r.schedule.Resume(r.key, time.Now())
	}
}

func (r *run) concludeFull(s *model.Run, news bool) {
	retainRegistrations(r.o.Registrar, r.view)
	if k := r.sharedOf(r.key); len(r.late)+len(k.late) > 0 {
		k.late = r.late
		r.follow(r.key, r.late)
		r.showWatches()
	}
	outdated := r.record.Conclude(s, news)
	if news && !s.Outcome().IsFailure() {
		r.o.Set.Applied(r.version)
	}
	r.schedule.Ran(r.key, r.interval(r.key), r.hasBegun(s))
	if outdated {
		r.schedule.Ask(r.key, Wake{Cause: model.CauseSchedule, At: time.Now()})
	}
}

// concludePart records a partial run. If it ends the failure of the manifest, a full run follows and
// updates the counts, unless one is in progress.
func (r *run) concludePart(s *model.Run) {
	if stale := r.record.ConcludePart(s); stale && r.sharedOf(r.key).whole == nil {
		r.schedule.Ask(r.key, Wake{Cause: model.CauseSchedule, At: time.Now()})
	}
	if !r.hasBegun(s) {
		r.schedule.Retry(r.key) // a full run, because no watch reports the drift again
	}
}

func (r *run) concludeFormer(ctx context.Context, s *model.Run) {
	if r.wake.Part == nil {
		retainRegistrations(r.o.Registrar, r.view)
		r.record.ConcludeFormer(s)
	}
	if !r.view.Has(r.key) {
		r.forget(ctx, r.key)
	}
}

// hasBegun reports whether the run reached a resource and its bundle is not damaged.
func (r *run) hasBegun(s *model.Run) bool {
	if r.damaged {
		return false
	}

	return len(s.Errors) == 0 || s.Counts.Total > s.Counts.NotRun
}
