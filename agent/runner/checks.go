package runner

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/resource"
)

// Checks holds the health checks of all manifests. It makes health check passes and acts on the results of
// checks. Its methods are not safe for concurrent use.
type Checks struct {
	m         *Manifests
	manifests map[string]*healthChecks
	passes    sync.WaitGroup

	mu    sync.Mutex
	ended []*pass
}

type healthChecks struct {
	statuses map[check]model.HealthStatus
	// critical holds the critical checks of the current run.
	critical []check
	next     time.Time
	pass     *pass
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

type check struct {
	Resource model.Ref
	Name     string
}

// pass makes the health checks of a manifest between runs, in its own goroutine.
type pass struct {
	key    string
	cancel context.CancelFunc
	// changes is the number of changes of the machine when the pass began.
	changes  int
	complete bool
	// The result is complete after the pass has ended: the transactions of the resources with checks, and
	// the resources to deregister.
	transactions []*model.Transaction
	deregistered []model.Ref
}

func (c *Checks) of(key string) *healthChecks {
	h, ok := c.manifests[key]
	if !ok {
		h = &healthChecks{statuses: map[check]model.HealthStatus{}}
		c.manifests[key] = h
	}

	return h
}

// interval returns the wait between passes; zero disables them.
func (c *Checks) interval() time.Duration {
	return c.m.schedule.Paced(c.m.o.Config().HealthInterval.Std())
}

// passAt returns the time of the next health check pass of a manifest, zero for none. A full run makes the
// checks itself.
func (c *Checks) passAt(key string) time.Time {
	h := c.of(key)
	if !c.m.view.Active(key).Monitored() || c.m.o.Running.Lanes.Has(key) || h.pass != nil || c.interval() == 0 {
		return time.Time{}
	}

	return h.next
}

// BeginPasses starts the due health check passes. It reports whether a pass was due. The passes stop when
// hard ends.
func (c *Checks) BeginPasses(ctx, hard context.Context, now time.Time) bool {
	began := false
	for _, key := range c.m.view.Keys() {
		if at := c.passAt(key); !at.IsZero() && !now.Before(at) {
			c.beginPass(ctx, hard, key)
			began = true
		}
	}

	return began
}

// beginPass starts the health checks of a manifest. They work beside runs and write no shared state.
func (c *Checks) beginPass(ctx, hard context.Context, key string) {
	v, conflicts := c.m.view.Active(key), c.m.view.Conflicts(key)
	built := v.Resolution.Graph
	o := options(hard, c.m.o.Runner, key, v, v.Noop, model.CauseHealth, ksuid.New().String())
	ctx, cancel := context.WithCancel(ctx)
	p := &pass{key: key, cancel: cancel, changes: c.m.o.Runner.Changes}
	o.Env.Scope.HealthCheckOnly = true
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }
	o.OnTransaction = func(t *model.Transaction) { p.transactions = append(p.transactions, t) }
	o.Register = func(ref model.Ref, _ []model.RegisterEntry) { p.deregistered = append(p.deregistered, ref) }
	c.of(key).pass = p
	c.passes.Go(func() {
		defer cancel()
		_ = tasks.Guard(c.m.o.Log, "checking the health of "+key, func() error { // the engine and Guard log it
			_, err := engine.Reconcile(ctx, built, o)
			p.complete = err == nil && ctx.Err() == nil
			return err
		})
		c.end(p)
		c.m.o.Wake()
	})
}

// ConcludePasses processes the results of the ended passes. A paused node starts no repair: a run after the
// pause makes the checks.
func (c *Checks) ConcludePasses(ctx context.Context) {
	for _, p := range c.takeEnded() {
		for _, ref := range p.deregistered {
			c.m.o.Registrar.Deregister(Source{Manifest: p.key, Resource: ref})
		}
		for _, t := range p.transactions {
			c.note(ctx, p.key, t)
			if t.OK() && !t.NotRun && !t.Skipped {
				c.m.o.Registrar.Reregister(Source{Manifest: p.key, Resource: t.Ref()})
			}
		}
		if due, part := c.conclude(p.key, byPass, c.m.view.Active(p.key).Resolution.Resources); due && !c.m.paused {
			c.m.schedule.Ask(p.key, Wake{Cause: model.CauseHealth, At: time.Now(), Part: part})
		}
		c.m.o.Status.SetHealth(p.key, c.of(p.key).counts())
	}
}

// note records the health checks of a transaction and reports the changed ones. The caller holds the lock.
func (c *Checks) note(ctx context.Context, key string, t *model.Transaction) {
	h := c.of(key)
	for _, result := range t.HealthCheck {
		id := check{t.Ref(), result.Name}
		if result.Status == model.HealthCritical {
			h.critical = append(h.critical, id)
		}
		was := h.statuses[id]
		if was == result.Status {
			continue
		}
		h.statuses[id] = result.Status
		level := slog.LevelWarn
		if result.Status == model.HealthOK {
			level = slog.LevelInfo
		}
		c.m.o.Log.Log(ctx, level, "health check "+string(result.Status), "manifest", t.Manifest, "resource", t.Ref().String(), "check", result.Name, "was", cmp.Or(was, "nothing"), "output", bounds.Text(result.Output))
		c.m.o.Running.After(func() { c.m.o.Report.Health(t, was, result) })
	}
}

// activate adapts a manifest to its new version: it discards the current pass and removes undeclared
// checks.
func (c *Checks) activate(key string, resources []*resource.Resource) {
	c.cancel(key)
	declared := map[check]bool{}
	for _, res := range resources {
		if res.Expand != nil {
			return // an include may declare further checks
		}
		for _, one := range res.Meta().HealthChecks {
			declared[check{res.Ref(), one.Name}] = true
		}
	}
	maps.DeleteFunc(c.of(key).statuses, func(one check, _ model.HealthStatus) bool { return !declared[one] })
}

func (c *Checks) remove(key string) {
	c.cancel(key)
	delete(c.manifests, key)
}

// takeRefresh returns and forgets the resources that a run refreshes because their checks are critical.
// part limits them.
func (c *Checks) takeRefresh(key string, part []model.Ref) (refresh []model.Ref) {
	h := c.of(key)
	h.refresh = slices.DeleteFunc(h.refresh, func(ref model.Ref) bool {
		taken := part == nil || slices.Contains(part, ref)
		if taken {
			refresh = append(refresh, ref)
		}
		return taken
	})

	return refresh
}

// conclude judges the checks of a run or a pass. It reports whether a repair is due, and for which resources.
// An empty part means the whole manifest.
func (c *Checks) conclude(key string, by origin, resources []*resource.Resource) (due bool, part []model.Ref) {
	h := c.of(key)
	now := time.Now()
	critical := h.critical
	h.critical, h.next = nil, now.Add(c.interval())
	found := findings{
		by: by, critical: len(critical) > 0, failing: h.failing, mayRepair: !now.Before(h.repairAt),
		unknown: len(critical) == 0 && h.counts().Critical > 0,
	}
	h.failing = found.critical || found.unknown
	v := decide(found)
	if v.reset {
		h.repairAt, h.refresh = time.Time{}, nil
		h.wait.Reset()
	}
	if v.extend {
		h.repairAt = now.Add(h.wait.Next())
	}
	if v.refresh {
		h.refresh = refreshedBy(resources, critical)
	}
	for _, found := range critical {
		if !slices.Contains(part, found.Resource) {
			part = append(part, found.Resource)
		}
	}

	return v.run, part
}

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

func (c *healthChecks) counts() model.HealthCounts {
	var out model.HealthCounts
	for _, status := range c.statuses {
		out.Add(status)
	}

	return out
}

func (c *Checks) cancel(key string) {
	if h := c.of(key); h.pass != nil {
		h.pass.cancel()
		h.pass, h.doubted = nil, false
	}
}

// takeEnded returns the valid passes that ended since its last call. A pass stays for a later call while a
// run of its manifest makes checks.
func (c *Checks) takeEnded() (out []*pass) {
	c.mu.Lock()
	ended := c.ended
	c.ended = nil
	c.mu.Unlock()
	for _, p := range ended {
		if c.m.o.Running.Lanes.MakesChecks(p.key) {
			c.end(p)
		} else if c.isValid(p) {
			out = append(out, p)
		}
	}

	return out
}

func (c *Checks) end(p *pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, p)
}

// isValid reports whether the result of an ended pass counts. If the machine changed during a pass, the
// change may have caused its results. The pass is discarded and repeated at once, but never twice in a row.
func (c *Checks) isValid(p *pass) bool {
	h, known := c.manifests[p.key]
	if !known || h.pass != p {
		return false // it was cancelled
	}
	h.pass, h.next = nil, time.Now()
	if h.doubted = p.changes != c.m.o.Runner.Changes && !h.doubted; h.doubted {
		return false
	}
	if !p.complete {
		h.next = h.next.Add(c.interval())
	}

	return p.complete
}

type origin int

const (
	byRun origin = iota
	// byRepair is a run because of a critical check.
	byRepair
	// byPass is a health check pass between runs.
	byPass
)

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
