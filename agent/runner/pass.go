package runner

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Found is what a health check pass found.
type Found struct {
	// Transactions are those of the resources that have checks.
	Transactions []*model.Transaction
	// Deregistered are the resources that must not register any more.
	Deregistered []model.Ref
}

// Pass makes the health checks of a manifest between its runs, in a goroutine of
// its own. It touches nothing of the monitor before its end.
type Pass struct {
	Key    string
	cancel context.CancelFunc
	// changes is how often the agent had changed the machine when it began.
	changes  int
	complete bool
	// Found is what it found; it must not be read before the pass has ended.
	Found Found
}

// Due returns when a pass of a manifest begins; zero is never.
func (m *Monitor) Due(key string) time.Time {
	c := m.of(key)
	if m.o.Interval() == 0 || c.pass != nil {
		return time.Time{}
	}

	return c.next
}

// Begin starts a pass. check makes the checks; it is called in a goroutine that
// ends before Wait returns.
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

// Cancel ends the pass of a manifest, if there is one, without a result.
func (m *Monitor) Cancel(key string) {
	if c := m.of(key); c.pass != nil {
		c.pass.cancel()
		c.pass, c.doubted = nil, false
	}
}

// Ended returns the passes that ended since they were returned last and count. changes is
// how often the agent has changed the machine. Those of a manifest of which a run makes
// checks now are left for a later call.
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

// end notes that a pass has ended.
func (m *Monitor) end(p *Pass) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, p)
}

// counts reports whether a pass counts that has ended. What the agent changed
// meanwhile may be why a check is critical, or was: then it does not count, and
// the checks are made again at once. That holds once, or a node that is never at
// rest would never know.
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

// ConcludePass is ConcludeRun for a pass.
func (m *Monitor) ConcludePass(key string, resources []*resource.Resource) (due bool, part []model.Ref) {
	return m.conclude(key, byPass, resources)
}
