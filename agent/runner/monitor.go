package runner

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

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

// ConcludeRun judges the checks of a run. It reports whether a repair is due, and for which resources. An
// empty part means the whole manifest.
func (m *Monitor) ConcludeRun(key string, cause model.Cause, resources []*resource.Resource) (due bool, part []model.Ref) {
	by := byRun
	if cause == model.CauseHealth {
		by = byRepair
	}

	return m.conclude(key, by, resources)
}

func (m *Monitor) conclude(key string, by origin, resources []*resource.Resource) (due bool, part []model.Ref) {
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
