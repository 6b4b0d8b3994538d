package agent

import (
	"context"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/health"
	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// passAt returns when a health check pass of a manifest is to begin; zero is never, as while
// it runs, which makes the checks too.
func (m *manifests) passAt(key string) time.Time {
	if !m.set.Active(key).Monitored() || m.running.Lanes.Has(key) {
		return time.Time{}
	}

	return m.health.Due(key)
}

// beginPasses begins the health check passes that are due, and reports whether
// there was one.
func (m *manifests) beginPasses(ctx, hard context.Context, now time.Time) bool {
	began := false
	for _, key := range m.set.Keys() {
		if at := m.passAt(key); !at.IsZero() && !now.Before(at) {
			m.beginPass(ctx, hard, key)
			began = true
		}
	}

	return began
}

// beginPass makes the health checks of a manifest beside runs and requests. It
// touches nothing of the manifests before it has ended.
func (m *manifests) beginPass(ctx, hard context.Context, key string) {
	built := m.set.Active(key).Resolution.Graph
	conflicts := m.set.Conflicts(key)
	o := m.options(hard, key, model.CauseHealth, ksuid.New().String())
	o.Env.Scope.HealthCheckOnly = true
	o.Admit = func(found []*resource.Resource) error { return conflicts(found).Err() }
	m.health.Begin(ctx, key, m.runner.Changes(), func(ctx context.Context) (found health.Found, err error) {
		o.OnTransaction = func(t *model.Transaction) { found.Transactions = append(found.Transactions, t) }
		o.Register = func(ref model.Ref, _ []model.RegisterEntry) { found.Deregistered = append(found.Deregistered, ref) }
		_, err = reconcile.Run(ctx, built, o)

		return found, err
	})
}

// concludePasses takes over what the passes that have ended found.
func (m *manifests) concludePasses(ctx context.Context) {
	for _, p := range m.health.Ended(m.runner.Changes()) {
		for _, ref := range p.Found.Deregistered {
			m.registrar.Deregister(registrar.Source{Manifest: p.Key, Resource: ref})
		}
		for _, t := range p.Found.Transactions {
			m.noteHealth(ctx, p.Key, t)
			if t.OK() && !t.NotRun && !t.Skipped {
				m.registrar.Reregister(registrar.Source{Manifest: p.Key, Resource: t.Ref()})
			}
		}
		if due, part := m.health.ConcludePass(p.Key, m.set.Active(p.Key).Resolution.Resources); due {
			m.schedule.AskPart(p.Key, model.CauseHealth, time.Now(), part)
		}
		m.status.SetHealth(p.Key, m.health.Counts(p.Key))
		m.report.Sync()
	}
}
