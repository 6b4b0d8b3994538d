package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/desired"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// RunNext begins the first run of a manifest that is due, and reports whether there was
// one.
func (m *Manifests) RunNext(ctx, hard context.Context, now time.Time) bool {
	m.scheduleAsked(now)
	key, w := m.schedule.Take(m.view.Keys(), now, func(key string, part []model.Ref) ([]model.Ref, bool) {
		if part == nil {
			return nil, m.mayRun(key) && !m.o.Running.Lanes.Has(key) && !now.Before(m.o.Running.Lanes.Next())
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
		kind, m.keptOf(key).whole = Manifest, r
		if !r.observes {
			m.checks.Cancel(key) // the run makes the checks itself
			r.asked = m.asked.take(key)
		}
	}
	o := r.options(m.view.Active(key))
	m.o.Running.Begin(kind, key, w.Part, func(lane *Lane) { r.reconcile(ctx, lane, o) })

	return true
}

// run is a run of a manifest, or of a part of it.
type run struct {
	*Manifests
	hard context.Context
	key  string
	wake Wake
	id   string
	// observes is that the node is paused: the run changes nothing.
	observes bool
	lane     *Lane
	// version is what runs, nil before the run has begun; release ends that it is kept.
	version *desired.Version
	release func()
	// record receives the results; it is nil before the run begins.
	record *status.Record
	// late are resources that the run discovered while it ran.
	late []*resource.Resource
	// taken is when the run counted changes of resources, unusedTurn that it left a turn to others.
	taken      map[model.Ref]time.Time
	unusedTurn bool
	// asked are the requests that the run answers.
	asked []*asked
	// damaged reports whether the run failed and its bundle is damaged.
	damaged bool
	// runsDamaged reports whether the run begins even if its bundle is damaged.
	runsDamaged bool
}

// errPaused is a run whose turn comes while the node is paused, since after it was asked for.
var errPaused = errors.New("the node is paused")

// errDamaged is returned for a run that waits until its damaged bundle is downloaded again.
var errDamaged = errors.New("the bundle is damaged")

// errInactive is a run of a manifest that is not active any more when it is its turn.
var errInactive = errors.New("the manifest is not active any more")

// reconcile reconciles a manifest, or a part of it, and reports. A wake for a part becomes one
// for the whole manifest where there is no such part.
func (r *run) reconcile(ctx context.Context, lane *Lane, o engine.ReconcileOptions) {
	r.lane = lane
	o.Locked = func(ctx context.Context, o *engine.ReconcileOptions) (*graph.Graph, error) {
		waited := o.Waited
		g, err := r.o.Runner.Await(ctx, r.id, lane, func() (*graph.Graph, Holds, error) {
			defer func() { waited = false }()
			return r.prepare(ctx, waited)
		}, func(g *graph.Graph) { r.begun(ctx, o, g) })
		if err == nil {
			r.begins()
		}
		return g, err
	}
	summary, err := r.o.Runner.Run(ctx, lane, nil, o)
	r.damaged = summary != nil && summary.Outcome() == model.OutcomeFailed && r.version != nil && r.isDamaged(r.version)
	defer func() { r.answer(ctx, summary, err) }() // after its report and its state
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	defer r.o.Report.End(r.id)
	if r.release != nil {
		defer r.release()
	}
	if k := r.kept[r.key]; k != nil && k.whole == r {
		k.whole = nil
	}
	failed := tasks.Guard(r.o.Log, "concluding the run of "+r.key, func() error {
		r.end(ctx, summary, err)
		return nil
	})
	if failed != nil && r.view.Active(r.key) != nil {
		r.schedule.Retry(r.key)
	}
}

// prepare returns the graph of the run, resolved again where its inputs may have changed. waited
// reports that another process delayed the run. The turn is not held.
func (r *run) prepare(ctx context.Context, waited bool) (*graph.Graph, Holds, error) {
	v, err := r.next()
	if err != nil {
		return nil, nil, err
	}
	if r.awaitsBundle(v) {
		return nil, nil, errDamaged
	}
	if r.wake.Part == nil || waited {
		r.refresh(ctx, v, waited)
	}
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	resolution := v.Resolution
	holds := func() bool {
		return r.view.Active(r.key) == v && v.Resolution == resolution && (r.observes || !r.paused)
	}

	return r.graph(v), holds, nil
}

// next returns the version that runs next. The turn is not held.
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

// awaitsBundle reports whether the run waits until its damaged bundle is downloaded again. The
// turn is not held.
func (r *run) awaitsBundle(v *desired.Version) bool {
	if v.Bundle == "" {
		return false
	}
	damaged := r.isDamaged(v)
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	k := r.keptOf(r.key)
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

// graph returns the part of a manifest that runs, or the whole manifest where it has no such
// part.
func (r *run) graph(v *desired.Version) *graph.Graph {
	g := v.Resolution.Graph
	if r.wake.Part != nil {
		if part, ok := g.Part(r.wake.Part); ok {
			return part
		}
		r.wake.Part = nil
	}

	return g
}

// begun completes the options of a run that begins.
func (r *run) begun(ctx context.Context, o *engine.ReconcileOptions, g *graph.Graph) {
	r.version = r.view.Active(r.key)
	r.release = r.o.Set.Hold(r.version.Bundle)
	o.Options = r.engineOptions(ctx)
	r.record = r.o.Status.Record(r.key, r.wake.Part == nil)
	if r.wake.Part != nil {
		failed := r.record.Failed()
		o.Prior = plan.HistoryForPartial(g, func(ref model.Ref) bool { return failed[ref] })
		return
	}
	o.AlreadyConverged = r.converged()
	r.say(ctx, r.version.Resolution.PreMessage)
}

// converged reports whether a requested run converged a resource without drift repair. The caller holds
// the lock.
func (r *run) converged() func(model.Ref) bool {
	converged, out := r.record.Converged(), map[model.Ref]bool{}
	for _, res := range slices.Concat(r.version.Resolution.Resources, r.keptOf(r.key).late) {
		// The next run may refresh a resource that subscribes.
		if meta := res.Meta(); len(meta.Subscribe) == 0 && (meta.Drift == model.DriftReport || meta.Drift == model.DriftIgnore) {
			out[res.Ref()] = converged[res.Ref()]
		}
	}

	return func(ref model.Ref) bool { return out[ref] }
}

// say logs a message of the manifest.
func (r *run) say(ctx context.Context, message string) {
	if message != "" {
		r.o.Log.InfoContext(ctx, message)
	}
}

// isCurrent reports whether what runs is still active.
func (r *run) isCurrent() bool {
	return r.version != nil && r.view.Active(r.key) == r.version
}

// engineOptions are those of the engine. What it calls takes the turn.
func (r *run) engineOptions(ctx context.Context) engine.Options {
	v := r.version
	o := r.options(v)
	o.Woken, o.Journal = r.wake.At, r.keptOf(r.key).journal
	if len(r.asked) > 0 {
		o.CorrelationID = r.asked[0].ID
	}
	if !r.observes {
		o.Refresh = r.checks.TakeRefresh(r.key, r.wake.Part)
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
		until := r.keptOf(r.key).pace.Take(res.Ref(), v.Resolution.Limit, res.Meta().Limit, now)
		if until.IsZero() {
			r.taken[res.Ref()] = now
		}
		return until
	}
	o.DriftSince = func(ref model.Ref) time.Time {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		return r.repairs.DriftSince(r.key, ref)
	}
	o.RecordOwnState = func(ref model.Ref, state resource.State) {
		r.o.Running.Lock()
		defer r.o.Running.Unlock()
		r.repairs.Left(r.key, ref, state)
	}
	if r.wake.Part == nil {
		run, every := r.schedule.Begin(r.key), r.o.Config().ReadAllEvery
		o.ReadAll = every > 0 && run%every == 0
	}

	return o.Options
}

// options are those of a run of a version.
func (r *run) options(v *desired.Version) engine.ReconcileOptions {
	return options(r.hard, r.o.Runner, r.key, v, v.Noop || r.observes, r.wake.Cause, r.id)
}

// options are those that runs and health check passes of a manifest have in
// common.
func options(hard context.Context, by *Runner, key string, v *desired.Version, noop bool, cause model.Cause, id string) engine.ReconcileOptions {
	o := by.Options(hard, id, noop)
	o.Env.Scope.Dir, o.Env.Scope.Author, o.Env.Scope.Origin = v.Resolution.Dir, v.Resolution.Author(), by.Origin(v.Resolution.Resolved)
	o.Secrets, o.FailOnError = v.Resolution.Secrets, v.Resolution.FailOnError
	o.Manifest, o.Revision, o.Digest, o.Cause = key, v.Entry.Revision, v.Digest, cause

	return o
}

// note takes over what came of a resource.
func (r *run) note(ctx context.Context, t *model.Transaction) {
	LogTransaction(ctx, r.o.Log, t)
	r.o.Running.Lock()
	defer r.o.Running.Unlock()
	r.lane.Done(t.Ref())
	r.o.Report.Transaction(t)
	r.record.Note(t, r.wake.Part == nil)
	if !r.isCurrent() {
		return
	}
	if !t.RetryAt.IsZero() {
		var seen time.Time
		if r.wake.Part != nil {
			seen = r.wake.At
		}
		r.repairs.PutOff(r.key, t.Ref(), seen, t.RetryAt)
	}
	if t.Outcome() == model.OutcomeStable {
		r.unusedTurn = r.keptOf(r.key).pace.GiveBack(t.Ref(), r.taken[t.Ref()]) || r.unusedTurn
	}
	r.repairs.Note(ctx, r.key, r.wake.Part, t)
	if ctx.Err() == nil { // else its checks were broken off
		r.checks.note(ctx, r.key, t)
	}
}
