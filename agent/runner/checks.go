package runner

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/desired"

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

// beginPasses is Manifests.BeginPasses.
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
	c.Begin(ctx, key, c.o.Runner.Changes(), func(ctx context.Context) (found Found, err error) {
		o.OnTransaction = func(t *model.Transaction) { found.Transactions = append(found.Transactions, t) }
		o.Register = func(ref model.Ref, _ []model.RegisterEntry) { found.Deregistered = append(found.Deregistered, ref) }
		_, err = engine.Reconcile(ctx, built, o)

		return found, err
	})
}

// concludePasses is Manifests.ConcludePasses. A paused node starts no repair: a run after the pause makes
// the checks.
func (c *checks) concludePasses(ctx context.Context, paused bool) {
	for _, p := range c.Ended(c.o.Runner.Changes(), c.o.Running.Lanes.MakesChecks) {
		for _, ref := range p.Found.Deregistered {
			c.o.Registrar.Deregister(Source{Manifest: p.Key, Resource: ref})
		}
		for _, t := range p.Found.Transactions {
			c.note(ctx, p.Key, t)
			if t.OK() && !t.NotRun && !t.Skipped {
				c.o.Registrar.Reregister(Source{Manifest: p.Key, Resource: t.Ref()})
			}
		}
		if due, part := c.ConcludePass(p.Key, c.view().Active(p.Key).Resolution.Resources); due && !paused {
			c.schedule.AskPart(p.Key, model.CauseHealth, time.Now(), part)
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
