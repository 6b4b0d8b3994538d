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

// Change is a health check with another status than before.
type Change struct {
	Result model.HealthResult
	Was    model.HealthStatus
}

// Options are what a Monitor is made from.
type MonitorOptions struct {
	// Interval returns the wait between passes; zero makes none.
	Interval func() time.Duration
	// Wake is called when a pass has ended. It must not block.
	Wake func()
	Log  *slog.Logger
}

// Monitor keeps the health checks of the manifests of a node, by their keys. Its
// methods are for one goroutine. Make it with New.
type Monitor struct {
	o      MonitorOptions
	checks map[string]*healthChecks
	passes sync.WaitGroup

	mu    sync.Mutex
	ended []*Pass
}

// checks are the health checks of one manifest.
type healthChecks struct {
	statuses map[check]model.HealthStatus
	// critical are those that the run in hand found so.
	critical []check
	// next is when they are made again without a run.
	next time.Time
	// pass makes them now, nil while none does.
	pass *Pass
	// doubted is that the last pass did not count.
	doubted bool
	// failing is that one was critical when they were made last.
	failing bool
	// refresh are the resources that the next run refreshes.
	refresh []model.Ref
	// repairAt is when a repairing run may follow the last one that did not help.
	repairAt time.Time
	wait     tasks.Backoff
}

// New returns a monitor without manifests.
func NewMonitor(o MonitorOptions) *Monitor { return &Monitor{o: o, checks: map[string]*healthChecks{}} }

func (m *Monitor) of(key string) *healthChecks {
	c, ok := m.checks[key]
	if !ok {
		c = &healthChecks{statuses: map[check]model.HealthStatus{}}
		m.checks[key] = c
	}

	return c
}

// Activate adapts a manifest to its new version: the pass in hand does not count,
// and checks that the version does not declare are forgotten.
func (m *Monitor) Activate(key string, resources []*resource.Resource) {
	m.Cancel(key)
	declared := map[check]bool{}
	for _, res := range resources {
		if res.Expand != nil {
			return // what it includes is not known yet
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

// Remove forgets a manifest.
func (m *Monitor) Remove(key string) {
	m.Cancel(key)
	delete(m.checks, key)
}

// ScheduleBy makes the checks of a manifest due at a time at the latest.
func (m *Monitor) ScheduleBy(key string, at time.Time) {
	c := m.of(key)
	c.next = model.EarlierTime(c.next, at)
}

// TakeRefresh returns the resources that a run refreshes because their checks are
// critical, and forgets them. A run of a part takes no others.
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

// Note takes over the health checks of a transaction, and returns those
// that changed.
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

// ConcludeRun judges the checks of a run, and reports whether a repairing run is due: of
// some resources, or where there are none of the whole manifest.
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

// refreshedBy returns the resources of which a critical check asks for a refresh.
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

// Counts returns the checks of a manifest by status.
func (m *Monitor) Counts(key string) model.HealthCounts { return m.of(key).counts() }

func (c *healthChecks) counts() model.HealthCounts {
	var out model.HealthCounts
	for _, status := range c.statuses {
		out.Add(status)
	}

	return out
}

// Wait returns when no pass goes on any more.
func (m *Monitor) Wait() { m.passes.Wait() }
