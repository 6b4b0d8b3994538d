package runner

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/drift"

	"github.com/musterfleet/muster/agent/reporting"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// Options are what Manifests tie together.
type ManifestsOptions struct {
	Host *host.Host
	// Config returns the configuration in force.
	Config func() config.Config
	// Facts returns the facts as they are known; RenewFacts gathers them again when a fact
	// file changed since.
	Facts      func() desired.Facts
	RenewFacts func(ctx context.Context)
	Set        *desired.Set
	Running    *Running
	Runner     *Runner
	Registrar  *Registrar
	Report     *reporting.Reporter
	Status     *status.Node
	// Drift are those of what is followed; New sets IsToCome and what repairs.New sets.
	Drift drift.Options
	// Wake wakes the loop that calls RunNext. It does not block.
	Wake func()
	Log  *slog.Logger
}

// Manifests runs the active manifests of a node. The caller of a method holds the turn of
// Options.Running, except for Sync, Handle and Close. Make it with New.
type Manifests struct {
	// Ran counts a run, nil where nobody counts. It is set before the first run.
	Ran func(key string, run *model.Run)

	o ManifestsOptions
	// view is the result of the last Sync or Handle.
	view     *desired.View
	schedule *Schedule
	checks   *checks
	drift    *drift.Monitor
	// kept is what the runs of a manifest leave for the next ones, by key.
	kept map[string]*kept
	// stableFacts is the digest of the stable facts at the last Sync.
	stableFacts string
	// asked are the requests that wait for the run of a manifest to begin.
	asked queues
	// paused reports whether the node observes and changes nothing.
	paused bool
	// announcing reports whether full runs wait for the reports of the assignments.
	announcing bool
	// rejected logs what was rejected, reported counts what is reported of that.
	rejected telemetry.RateLimitedLog
	reported quota
	// postponed logs what is not ready, postponements counts what is reported of that.
	postponed     telemetry.RateLimitedLog
	postponements quota
}

// kept is what the runs of a manifest leave for the next ones.
type kept struct {
	journal *engine.FileJournal
	pace    Pace
	// whole is the run of the whole manifest that runs or waits, nil for none.
	whole *run
	// runsDamaged makes the next run use the bundle although it is damaged.
	runsDamaged bool
	// late are the resources that the last full run discovered while it ran.
	late []*resource.Resource
}

// New returns Manifests that have made nothing of the set.
func NewManifests(o ManifestsOptions) *Manifests {
	m := &Manifests{o: o, view: o.Set.View(), schedule: NewSchedule(o.Status.Pending), kept: map[string]*kept{}, asked: queues{}}
	o.Drift.IsToCome = o.Running.Lanes.IsToCome
	o.Drift.Flapping, o.Drift.Calm = m.beginFlapping, m.endFlapping
	m.drift = drift.New(o.Drift)
	monitor := NewMonitor(MonitorOptions{
		Interval: func() time.Duration { return m.schedule.Paced(o.Config().HealthInterval.Std()) },
		Wake:     o.Wake, Log: o.Log,
	})
	m.checks = &checks{Monitor: monitor, o: o, view: func() *desired.View { return m.view }, schedule: m.schedule}

	return m
}

// Close stops watching for drift, waits for the health check passes and closes the set. No run
// is in progress, and neither Sync nor Handle.
func (m *Manifests) Close(ctx context.Context) {
	m.drift.Close()
	m.checks.Wait()
	m.o.Set.Handle(ctx, m.input()) // the messages of the last runs
	m.o.Set.Close(ctx)
}

// Next returns when something is due by itself; zero is never.
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
		earlier(m.checks.passAt(key))
	}

	return at
}

// mayRun reports whether a manifest may run for what it would run for now. On a paused node only
// what looks for drift does, or would repair what a check found before the pause, and changes
// nothing; what somebody asked for waits.
func (m *Manifests) mayRun(key string) bool {
	cause := m.schedule.Cause(key)

	return !m.paused || cause == model.CauseSchedule || cause == model.CauseDrift || cause == model.CauseHealth
}

// Pause has what begins from now on observe and change nothing, or ends that: then all manifests
// run, because what drifted meanwhile was only observed.
func (m *Manifests) Pause(paused bool, now time.Time) {
	m.paused = paused
	if paused {
		return
	}
	for _, key := range m.view.Keys() {
		m.schedule.Ask(key, model.CauseSchedule, now)
	}
}

// View returns the active versions and the states of the keys.
func (m *Manifests) View() *desired.View { return m.view }

// input returns the input for the assignments, as it is now.
func (m *Manifests) input() desired.Input {
	c := m.o.Config()

	return desired.Input{
		Families: model.Families(c.Node, c.Groups), Facts: m.o.Facts(), Changes: m.o.Runner.Changes(),
		MaxDepth: c.MaxDepth, Interval: c.Interval.Std(), Now: time.Now(),
	}
}

// interval returns how often a manifest runs.
func (m *Manifests) interval(key string) time.Duration {
	if v := m.view.Active(key); v != nil && v.Resolution.Interval > 0 {
		return v.Resolution.Interval
	}

	return m.o.Config().Interval.Std()
}

// keptOf returns what the runs of a manifest left.
func (m *Manifests) keptOf(key string) *kept {
	k := m.kept[key]
	if k == nil {
		k = &kept{journal: engine.NewFileJournal(m.o.Host, m.o.Config().StateDir, key)}
		m.kept[key] = k
	}

	return k
}

// forget removes what the runs of a manifest left. A run in progress does so again at its end. No other
// run of the manifest begins before the journal is empty.
func (m *Manifests) forget(ctx context.Context, key string) {
	journal := m.keptOf(key).journal
	delete(m.kept, key)
	m.o.Running.After(func() {
		if err := journal.Reset(ctx); err != nil {
			m.o.Log.ErrorContext(ctx, "cannot remove pending refreshes", "manifest", key, "error", err)
		}
	})
}

// follow follows the resources of a manifest; late are those that its run found.
func (m *Manifests) follow(key string, late []*resource.Resource) {
	r := m.view.Active(key).Resolution
	all := append(r.Resources[:len(r.Resources):len(r.Resources)], late...)
	m.drift.Follow(key, drift.Manifest{Facts: m.o.Facts().Values, Resources: all, Inputs: r.Inputs, Bundle: r.Dir, Limits: r.Flapping})
}

// NoteDrift asks for the repair of what may have drifted.
func (m *Manifests) NoteDrift(now time.Time) {
	for _, d := range m.drift.Take(now) {
		m.schedule.AskFor(d.Key, Wake{Cause: model.CauseDrift, At: d.Since, Part: d.Refs, Retry: d.Retry})
	}
	m.o.Status.SetWatches(m.drift.Watched())
}

// BeginPasses begins the health check passes that are due, and reports whether
// there was one. hard ends when they are broken off.
func (m *Manifests) BeginPasses(ctx, hard context.Context, now time.Time) bool {
	return m.checks.beginPasses(ctx, hard, now)
}

// ConcludePasses takes over what the passes that have ended found.
func (m *Manifests) ConcludePasses(ctx context.Context) { m.checks.concludePasses(ctx, m.paused) }
