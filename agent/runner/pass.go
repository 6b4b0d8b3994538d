package runner

import (
	"context"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

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

// end adds a pass to the ended ones.
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

// ConcludePass is ConcludeRun for a pass.
func (m *Monitor) ConcludePass(key string, resources []*resource.Resource) (due bool, part []model.Ref) {
	return m.conclude(key, byPass, resources)
}
