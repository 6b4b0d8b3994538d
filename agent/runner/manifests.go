package runner

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// ManifestsOptions configure Manifests.
type ManifestsOptions struct {
	Host   *host.Host
	Config func() config.Config
	// Facts returns the known facts. RenewFacts gathers them again if a fact file changed.
	Facts      func() desired.Facts
	RenewFacts func(ctx context.Context)
	Set        *desired.Set
	Running    *Running
	Runner     *Runner
	Registrar  *Registrar
	Report     *reporting.Reporter
	Status     *status.Node
	// Drift configures the drift detection. NewManifests sets IsToCome.
	Drift drift.Options
	// Wake wakes the loop that calls RunNext. It must not block.
	Wake func()
	Log  *slog.Logger
}

// Manifests runs the active manifests of a node. Callers hold the lock of Options.Running, except for Sync,
// Handle and Close.
type Manifests struct {
	// Ran counts a run. It is set before the first run; the default counts none.
	Ran func(key string, run *model.Run)

	Checks *Checks

	o ManifestsOptions
	// view is the result of the last Sync or Handle.
	view     *desired.View
	schedule *Schedule
	drift    *drift.Monitor
	// shared holds the data that runs of a manifest share, by key.
	shared map[string]*shared
	// stableFacts is the digest of the stable facts at the last Sync.
	stableFacts string
	asked       queues
	// paused reports whether the node observes and changes nothing.
	paused bool
	// announcing reports whether full runs wait for the reports of the assignments.
	announcing    bool
	announcements announcements
}

type shared struct {
	journal *engine.FileJournal
	pace    Pace
	// whole is the full run that runs or waits, or nil.
	whole *run
	// runsDamaged makes the next run use a damaged bundle.
	runsDamaged bool
	// late holds the resources that the last full run discovered.
	late []*resource.Resource
}

// NewManifests returns Manifests without runs.
func NewManifests(o ManifestsOptions) *Manifests {
	m := &Manifests{Ran: func(string, *model.Run) {}, o: o, view: o.Set.View(), schedule: NewSchedule(o.Status.Pending), shared: map[string]*shared{}, asked: queues{}}
	o.Drift.IsToCome = o.Running.Lanes.IsToCome
	m.drift = drift.New(o.Drift)
	m.Checks = &Checks{m: m, manifests: map[string]*healthChecks{}}
	m.announcements = announcements{log: o.Log, report: o.Report, runner: o.Runner}

	return m
}

// Close stops the drift detection, waits for the health check passes and closes the set. No run is in
// progress, and neither Sync nor Handle.
func (m *Manifests) Close(ctx context.Context) {
	m.drift.Close()
	m.Checks.passes.Wait()
	m.o.Set.Handle(ctx, m.input()) // the messages of the last runs
	m.o.Set.Close(ctx)
}

// Next returns the time of the next task that needs no event, zero for none.
func (m *Manifests) Next(now time.Time) (at time.Time) {
	earlier := func(t time.Time) { at = model.EarlierNonZero(t, at) }
	earlier(m.drift.Next())
	free := m.o.Running.Lanes.Next()
	if now.Before(free) {
		earlier(free)
	}
	for _, key := range m.view.Keys() {
		if !m.announcing && !now.Before(free) && !m.o.Running.Lanes.Has(key) && m.mayRun(key) {
			earlier(m.schedule.Next(key))
		}
		earlier(m.Checks.passAt(key))
	}

	return at
}

// mayRun reports whether a manifest may run for its current cause. A paused node only checks for drift and
// changes nothing. Requested changes wait.
func (m *Manifests) mayRun(key string) bool {
	cause := m.schedule.Cause(key)

	return !m.paused || cause == model.CauseSchedule || cause == model.CauseDrift || cause == model.CauseHealth
}

// Pause starts or ends a pause; nil is no pause. While paused, new runs observe and change nothing. All
// manifests run after a pause, because the node only observed drift.
func (m *Manifests) Pause(ctx context.Context, pause *model.Paused, now time.Time) {
	before := m.paused
	if m.paused = pause != nil; before == m.paused {
		return
	}
	if m.paused {
		m.o.Log.InfoContext(ctx, "paused, only observing", "pause", pause.String(), "from", pause.From)
		return
	}
	m.o.Log.InfoContext(ctx, "resumed")
	for _, key := range m.view.Keys() {
		m.schedule.Ask(key, Wake{Cause: model.CauseSchedule, At: now})
	}
}

// View returns the active versions and the states of the keys.
func (m *Manifests) View() *desired.View { return m.view }

func (m *Manifests) input() desired.Input {
	c := m.o.Config()

	return desired.Input{
		Families: model.Families(c.Node, c.Groups), Facts: m.o.Facts(), Changes: m.o.Runner.Changes,
		MaxDepth: c.MaxDepth, Interval: c.Interval.Std(), Now: time.Now(),
	}
}

func (m *Manifests) interval(key string) time.Duration {
	if v := m.view.Active(key); v != nil && v.Resolution.Interval > 0 {
		return v.Resolution.Interval
	}

	return m.o.Config().Interval.Std()
}

func (m *Manifests) sharedOf(key string) *shared {
	k := m.shared[key]
	if k == nil {
		k = &shared{journal: engine.NewFileJournal(m.o.Host, m.o.Config().StateDir, key)}
		m.shared[key] = k
	}

	return k
}

// forget removes the data that runs of a manifest share. A run in progress does so again at its end. No
// other run of the manifest begins before the journal is empty.
func (m *Manifests) forget(ctx context.Context, key string) {
	journal := m.sharedOf(key).journal
	delete(m.shared, key)
	m.o.Running.After(func() {
		if err := journal.Reset(ctx); err != nil {
			m.o.Log.ErrorContext(ctx, "cannot remove pending refreshes", "manifest", key, "error", err)
		}
	})
}

// follow watches the resources of a manifest. late lists the discovered ones.
func (m *Manifests) follow(key string, late []*resource.Resource) {
	r := m.view.Active(key).Resolution
	all := append(r.Resources[:len(r.Resources):len(r.Resources)], late...)
	m.drift.Follow(key, drift.Manifest{Facts: m.o.Facts().Values, Resources: all, Inputs: r.Inputs, Bundle: r.Dir, Limits: r.Flapping})
}

// NoteDrift schedules the repair of resources that may have drifted.
func (m *Manifests) NoteDrift(now time.Time) {
	began, ended := m.drift.Flaps(now)
	report := func(f model.FlappingState, message string) {
		m.o.Running.After(func() { m.o.Report.Node(f.Manifest, model.NodeFlapping, message) })
	}
	for _, f := range began {
		m.o.Log.Warn("resource flapping", "manifest", f.Manifest, "resource", f.Resource.String(), "writer", cmp.Or(f.Writer, "unknown"))
		report(f, flappingText(f))
	}
	for _, f := range ended {
		m.o.Log.Info("resource no longer flapping", "manifest", f.Manifest, "resource", f.Resource.String())
		report(f, f.Resource.String()+" of "+f.Manifest+" no longer flaps; the agent repairs it immediately again")
	}
	for _, d := range m.drift.Take(now) {
		m.schedule.Ask(d.Key, Wake{Cause: model.CauseDrift, At: d.Since, Part: d.Refs, Retry: d.Retry})
	}
	m.showWatches()
}

// Sync reads the assignments and activates the result. It may wait for NATS and for templates while runs
// continue. Only one goroutine may call Sync and Handle.
func (m *Manifests) Sync(ctx context.Context, entries map[string]model.Entry, sync model.Sync) {
	m.o.RenewFacts(ctx)
	var in desired.Input
	m.o.Running.Do(func() { in = m.input() })
	in.Entries, in.Sync = entries, sync
	result := m.o.Set.Sync(ctx, in)
	m.put(ctx, result)
	m.o.Running.Do(func() {
		before := m.stableFacts
		if m.stableFacts = in.Facts.Stable; before == "" || before == m.stableFacts {
			return
		}
		for _, key := range m.view.Keys() {
			if v := m.view.Active(key); !v.Resolution.Static { // it depends on facts
				m.schedule.Ask(key, Wake{Cause: model.CauseDrift, At: in.Now})
			}
		}
	})
	m.announce(ctx, result)
	m.o.Set.RemoveBundles(ctx)
}

// Handle processes the messages of runs to the set of assignments.
func (m *Manifests) Handle(ctx context.Context) {
	var in desired.Input
	m.o.Running.Do(func() { in = m.input() })
	if result := m.o.Set.Handle(ctx, in); !result.IsEmpty() {
		m.put(ctx, result)
		m.announce(ctx, result)
	}
}

// put activates the result of the assignments. Full runs wait for announce, which follows.
func (m *Manifests) put(ctx context.Context, result desired.Result) {
	next := m.o.Set.View()
	m.o.Running.Lock()
	defer m.o.Running.Unlock()
	m.announcing = true
	now := time.Now()
	m.view = next.After(m.view, result.Refreshed)
	m.o.Status.SetAssignments(m.view.States())
	for _, key := range result.Unassigned {
		m.o.Log.InfoContext(ctx, "assignment removed", "manifest", key)
		m.o.Runner.ChangedAt = now
		m.Checks.remove(key)
		m.drift.Remove(key)
		m.schedule.Forget(key)
		m.o.Report.Forget(key)
		m.forget(ctx, key)
	}
	for _, key := range result.Deactivated {
		m.o.Log.InfoContext(ctx, "assignment deactivated", "manifest", key)
		m.Checks.remove(key)
		m.drift.Remove(key)
		m.o.Status.SetHealth(key, model.HealthCounts{})
	}
	for _, a := range result.Activated {
		m.activate(ctx, a, now)
	}
	for _, key := range result.Refreshed {
		m.Checks.cancel(key)
		m.follow(key, nil)
		m.schedule.Ask(key, Wake{Cause: model.CauseSchedule, At: now})
	}
	for _, key := range result.Restored {
		m.sharedOf(key).runsDamaged = true
		m.schedule.Resume(key, now)
	}
	for _, key := range m.view.Keys() {
		m.schedule.Within(key, m.interval(key))
		h := m.Checks.of(key)
		h.next = model.EarlierTime(h.next, now.Add(m.o.Config().HealthInterval.Std()))
	}
	retainRegistrations(m.o.Registrar, m.view)
	m.showWatches()
}

// isDamaged reports whether the bundle of a version is damaged. The caller does not hold the lock.
func (m *Manifests) isDamaged(v *desired.Version) bool {
	var now desired.Version
	m.o.Running.Do(func() { now = *v })

	return now.Damaged()
}

func (m *Manifests) activate(ctx context.Context, a desired.Activation, now time.Time) {
	m.o.Runner.ChangedAt = now
	v := m.view.Active(a.Key)
	m.o.Report.Forget(a.Key) // the new version reports all its results
	m.Checks.activate(a.Key, v.Resolution.Resources)
	m.o.Status.Activate(a.Key)
	m.sharedOf(a.Key).late = nil
	m.follow(a.Key, nil)
	m.o.Log.InfoContext(ctx, "assignment activated", "manifest", a.Key, "revision", v.Entry.Revision, "digest", v.Digest, "resources", v.Resolution.Graph.Len())
	cause := model.CauseManifest
	if a.Applied {
		cause = model.CauseSchedule // what differs now is drift
		recallRegistrations(m.o.Registrar, a.Key, v, m.paused, m.o.Config().HealthInterval > 0)
	}
	m.schedule.Ask(a.Key, Wake{Cause: cause, At: now})
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
