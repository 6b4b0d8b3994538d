package runner

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// checks makes health check passes and acts on the results of health checks.
type checks struct {
	*Monitor
	o        ManifestsOptions
	view     func() *desired.View
	schedule *Schedule
}

// passAt returns the time of the next health check pass of a manifest, zero for none. A full run makes the
// checks itself.
func (c *checks) passAt(key string) time.Time {
	if !c.view().Active(key).Monitored() || c.o.Running.Lanes.Has(key) {
		return time.Time{}
	}

	return c.Due(key)
}

func (c *checks) beginPasses(ctx, hard context.Context, now time.Time) bool {
	began := false
	for _, key := range c.view().Keys() {
		if at := c.passAt(key); !at.IsZero() && !now.Before(at) {
			c.beginPass(ctx, hard, key)
			began = true
		}
	}

	return began
}

// beginPass starts the health checks of a manifest. They work beside runs and write no shared state.
func (c *checks) beginPass(ctx, hard context.Context, key string) {
	v, conflicts := c.view().Active(key), c.view().Conflicts(key)
	built := v.Resolution.Graph
	o := options(hard, c.o.Runner, key, v, v.Noop, model.CauseHealth, ksuid.New().String())
	o.Env.Scope.HealthCheckOnly = true
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }
	c.Begin(ctx, key, c.o.Runner.Changes, func(ctx context.Context) (found Found, err error) {
		o.OnTransaction = func(t *model.Transaction) { found.Transactions = append(found.Transactions, t) }
		o.Register = func(ref model.Ref, _ []model.RegisterEntry) { found.Deregistered = append(found.Deregistered, ref) }
		_, err = engine.Reconcile(ctx, built, o)

		return found, err
	})
}

// concludePasses is Manifests.ConcludePasses. A paused node starts no repair: a run after the pause makes
// the checks.
func (c *checks) concludePasses(ctx context.Context, paused bool) {
	for _, p := range c.Ended(c.o.Runner.Changes, c.o.Running.Lanes.MakesChecks) {
		for _, ref := range p.Found.Deregistered {
			c.o.Registrar.Deregister(Source{Manifest: p.Key, Resource: ref})
		}
		for _, t := range p.Found.Transactions {
			c.note(ctx, p.Key, t)
			if t.OK() && !t.NotRun && !t.Skipped {
				c.o.Registrar.Reregister(Source{Manifest: p.Key, Resource: t.Ref()})
			}
		}
		if due, part := c.Conclude(p.Key, byPass, c.view().Active(p.Key).Resolution.Resources); due && !paused {
			c.schedule.Ask(p.Key, Wake{Cause: model.CauseHealth, At: time.Now(), Part: part})
		}
		c.o.Status.SetHealth(p.Key, c.Counts(p.Key))
	}
}

// note records the health checks of a transaction and reports the changed ones. The caller holds the lock.
func (c *checks) note(ctx context.Context, key string, t *model.Transaction) {
	for _, change := range c.Note(key, t) {
		level := slog.LevelWarn
		if change.Result.Status == model.HealthOK {
			level = slog.LevelInfo
		}
		c.o.Log.Log(ctx, level, "health check "+string(change.Result.Status), "manifest", t.Manifest, "resource", t.Ref().String(), "check", change.Result.Name, "was", cmp.Or(change.Was, "nothing"), "output", bounds.Text(change.Result.Output))
		c.o.Running.After(func() { c.o.Report.Health(t, change.Was, change.Result) })
	}
}

// check is one health check of a manifest.
type check struct {
	Resource model.Ref
	Name     string
}

// Change is a changed status of a health check.
type Change struct {
	Result model.HealthResult
	Was    model.HealthStatus
}

// MonitorOptions configure a Monitor.
type MonitorOptions struct {
	// Interval returns the wait between passes; zero disables them.
	Interval func() time.Duration
	// Wake is called after each pass. It must not block.
	Wake func()
	Log  *slog.Logger
}

// Monitor holds the health checks of all manifests, by key. Its methods are not safe for concurrent use.
type Monitor struct {
	o      MonitorOptions
	checks map[string]*healthChecks
	passes sync.WaitGroup

	mu    sync.Mutex
	ended []*Pass
}

// healthChecks are the health checks of one manifest.
type healthChecks struct {
	statuses map[check]model.HealthStatus
	// critical holds the critical checks of the current run.
	critical []check
	// next is the time of the next pass.
	next time.Time
	// pass is the current pass, or nil.
	pass *Pass
	// doubted reports whether the last pass was discarded.
	doubted bool
	// failing reports whether a check was critical the last time.
	failing bool
	// refresh holds the resources that the next run refreshes.
	refresh []model.Ref
	// repairAt is the time of the next repair after an unsuccessful one.
	repairAt time.Time
	wait     tasks.Backoff
}

// NewMonitor returns a monitor without manifests.
func NewMonitor(o MonitorOptions) *Monitor { return &Monitor{o: o, checks: map[string]*healthChecks{}} }

func (m *Monitor) of(key string) *healthChecks {
	c, ok := m.checks[key]
	if !ok {
		c = &healthChecks{statuses: map[check]model.HealthStatus{}}
		m.checks[key] = c
	}

	return c
}

// Activate adapts a manifest to its new version: it discards the current pass and removes undeclared
// checks.
func (m *Monitor) Activate(key string, resources []*resource.Resource) {
	m.Cancel(key)
	declared := map[check]bool{}
	for _, res := range resources {
		if res.Expand != nil {
			// an include may declare further checks
			return // an include may declare further checks
		}
		for _, c := range res.Meta().HealthChecks {
			declared[check{res.Ref(), c.Name}] = true
		}
	}
	statuses := m.of(key).statuses
	for c := range statuses {
		if !declared[c] {
			delete(statuses, c)
		}
	}
}

// Remove removes a manifest.
func (m *Monitor) Remove(key string) {
	m.Cancel(key)
	delete(m.checks, key)
}

// ScheduleBy schedules the next pass of a manifest at the given time or before.
func (m *Monitor) ScheduleBy(key string, at time.Time) {
	c := m.of(key)
	c.next = model.EarlierTime(c.next, at)
}

// TakeRefresh returns and forgets the resources that a run refreshes because their checks are critical.
// part limits them.
func (m *Monitor) TakeRefresh(key string, part []model.Ref) (refresh []model.Ref) {
	c := m.of(key)
	c.refresh = slices.DeleteFunc(c.refresh, func(ref model.Ref) bool {
		taken := part == nil || slices.Contains(part, ref)
		if taken {
			refresh = append(refresh, ref)
		}
		return taken
	})

	return refresh
}

// Note records the health checks of a transaction and returns the changed ones.
func (m *Monitor) Note(key string, t *model.Transaction) []Change {
	c := m.of(key)
	var out []Change
	for _, result := range t.HealthCheck {
		id := check{t.Ref(), result.Name}
		if result.Status == model.HealthCritical {
			c.critical = append(c.critical, id)
		}
		if was := c.statuses[id]; was != result.Status {
			c.statuses[id] = result.Status
			out = append(out, Change{result, was})
		}
	}

	return out
}

// Conclude judges the checks of a run or a pass. It reports whether a repair is due, and for which resources.
// An empty part means the whole manifest.
func (m *Monitor) Conclude(key string, by origin, resources []*resource.Resource) (due bool, part []model.Ref) {
	c := m.of(key)
	now := time.Now()
	critical := c.critical
	c.critical, c.next = nil, now.Add(m.o.Interval())
	found := findings{
		by: by, critical: len(critical) > 0, failing: c.failing, mayRepair: !now.Before(c.repairAt),
		unknown: len(critical) == 0 && c.counts().Critical > 0,
	}
	c.failing = found.critical || found.unknown
	v := decide(found)
	if v.reset {
		c.repairAt, c.refresh = time.Time{}, nil
		c.wait.Reset()
	}
	if v.extend {
		c.repairAt = now.Add(c.wait.Next())
	}
	if v.refresh {
		c.refresh = refreshedBy(resources, critical)
	}

	for _, found := range critical {
		if !slices.Contains(part, found.Resource) {
			part = append(part, found.Resource)
		}
	}

	return v.run, part
}

// refreshedBy returns the resources with a critical check that asks for a refresh.
func refreshedBy(resources []*resource.Resource, critical []check) []model.Ref {
	var out []model.Ref
	for _, res := range resources {
		if slices.ContainsFunc(res.Meta().HealthChecks, func(c model.HealthCheck) bool {
			return c.OnCritical == model.OnCriticalRefresh && slices.Contains(critical, check{res.Ref(), c.Name})
		}) {
			out = append(out, res.Ref())
		}
	}

	return out
}

// Counts returns the number of checks of a manifest by status.
func (m *Monitor) Counts(key string) model.HealthCounts { return m.of(key).counts() }

func (c *healthChecks) counts() model.HealthCounts {
	var out model.HealthCounts
	for _, status := range c.statuses {
		out.Add(status)
	}

	return out
}

// Wait waits for the end of all passes.
func (m *Monitor) Wait() { m.passes.Wait() }

// Found is the result of a health check pass.
type Found struct {
	// Transactions are the transactions of the resources with checks.
	Transactions []*model.Transaction
	// Deregistered are resources to deregister.
	Deregistered []model.Ref
}

// Pass makes the health checks of a manifest between runs, in its own goroutine.
type Pass struct {
	Key    string
	cancel context.CancelFunc
	// changes is the number of changes of the machine when the pass began.
	changes  int
	complete bool
	// Found is the result. Do not read it before the pass has ended.
	Found Found
}

// Due returns the time of the next pass of a manifest, zero for none.
func (m *Monitor) Due(key string) time.Time {
	c := m.of(key)
	if m.o.Interval() == 0 || c.pass != nil {
		return time.Time{}
	}

	return c.next
}

// Begin starts a pass. It calls check in a goroutine that ends before Wait returns.
func (m *Monitor) Begin(ctx context.Context, key string, changes int, check func(context.Context) (Found, error)) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Pass{Key: key, cancel: cancel, changes: changes}
	m.of(key).pass = p
	m.passes.Go(func() {
		defer cancel()
		_ = tasks.Guard(m.o.Log, "checking the health of "+key, func() (err error) { // the engine and Guard log it
			p.Found, err = check(ctx)
			p.complete = err == nil && ctx.Err() == nil
			return err
		})
		m.end(p)
		m.o.Wake()
	})
}

// Cancel discards the current pass of a manifest.
func (m *Monitor) Cancel(key string) {
	if c := m.of(key); c.pass != nil {
		c.pass.cancel()
		c.pass, c.doubted = nil, false
	}
}

// Ended returns the valid passes that ended since its last call. changes is the number of changes of the
// machine. A pass stays for a later call while a run of its manifest makes checks.
func (m *Monitor) Ended(changes int, checking func(key string) bool) (out []*Pass) {
	m.mu.Lock()
	ended := m.ended
	m.ended = nil
	m.mu.Unlock()
	for _, p := range ended {
		if checking(p.Key) {
			m.end(p)
		} else if m.counts(p, changes) {
			out = append(out, p)
		}
	}

	return out
}

func (m *Monitor) end(p *Pass) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, p)
}

// counts reports whether an ended pass is valid. If the machine changed during a pass, the change may have
// caused its results. The monitor discards the pass and repeats it at once, but never twice in a row.
func (m *Monitor) counts(p *Pass, changes int) bool {
	c, known := m.checks[p.Key]
	if !known || c.pass != p {
		return false // it was cancelled
	}
	c.pass, c.next = nil, time.Now()
	if c.doubted = p.changes != changes && !c.doubted; c.doubted {
		return false
	}
	if !p.complete {
		c.next = c.next.Add(m.o.Interval())
	}

	return p.complete
}

// origin is the source of health check results.
type origin int

const (
	byRun origin = iota
	// byRepair is a run because of a critical check.
	byRepair
	// byPass is a health check pass between runs.
	byPass
)

// findings are the results of health checks.
type findings struct {
	by origin
	// critical reports whether a check is critical. unknown reports whether a check was critical before and
	// was not made now.
	critical, unknown bool
	// failing reports whether a check was critical the last time.
	failing bool
	// mayRepair reports whether the wait after the last unsuccessful repair is over.
	mayRepair bool
}

// verdict is the consequence of findings.
type verdict struct {
	// run starts a repair. refresh refreshes resources with a critical check that asks for it.
	run, refresh bool
	// reset and extend change the wait between repairs.
	reset, extend bool
}

// decide judges health checks. A critical check causes a repair, and further repairs after growing waits
// while it stays critical. If a pass finds that all checks recovered, a run follows: it registers the
// resources.
func decide(f findings) verdict {
	switch {
	case !f.critical && !f.unknown:
		return verdict{reset: true, run: f.failing && f.by == byPass}
	case f.by == byRepair:
		return verdict{extend: true}
	case f.critical && f.mayRepair:
		return verdict{run: true, refresh: true}
	default:
		return verdict{}
	}
}
