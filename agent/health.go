package agent

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// check is one health check of a manifest.
type check struct {
	ref  model.Ref
	name string
}

// health is how the health checks of a unit stand.
type health struct {
	statuses map[check]model.HealthStatus
	// critical are those that the run in hand found so.
	critical []check
	// next is when they are made again without a run.
	next time.Time
	// round makes them now, nil while none does.
	round *round
	// doubted says that what the last round found did not count.
	doubted bool
	// failing says that one was critical when they were made last.
	failing bool
	// refresh are the resources that the next run refreshes.
	refresh []model.Ref
	// repairAt is when a repairing run may follow the last one that did not help.
	repairAt time.Time
	wait     tasks.Backoff
}

// note takes over what a transaction says of health checks, and reports those
// that have another status than before.
func (r *runner) note(ctx context.Context, u *unit, t *model.Transaction) {
	if ctx.Err() != nil {
		return // checks were broken off
	}
	for _, result := range t.HealthCheck {
		key := check{t.Ref(), result.Name}
		if result.Status == model.HealthCritical {
			u.health.critical = append(u.health.critical, key)
		}
		was := u.health.statuses[key]
		if was == result.Status {
			continue
		}
		if u.health.statuses == nil {
			u.health.statuses = map[check]model.HealthStatus{}
		}
		u.health.statuses[key] = result.Status
		r.reportHealth(ctx, t, result, was)
	}
}

func (r *runner) reportHealth(ctx context.Context, t *model.Transaction, result model.HealthResult, was model.HealthStatus) {
	level := slog.LevelWarn
	if result.Status == model.HealthOK {
		level = slog.LevelInfo
	}
	r.log.Log(ctx, level, "health check "+string(result.Status), "manifest", t.Manifest, "resource", t.Ref().String(), "check", result.Name, "was", cmp.Or(was, "nothing"), "output", bounds.Text(result.Output))
	r.append(model.Report{
		Kind: model.KindHealth, Outcome: model.Outcome(result.Status), Type: model.ProtocolHealth, RunID: t.RunID, Manifest: t.Manifest,
		Revision: t.Revision, Digest: t.Digest, Cause: t.Cause,
	}, model.HealthReport{
		Protocol: model.ProtocolHealth, Node: t.Node, Manifest: t.Manifest, Resource: t.Ref(), Check: result.Name,
		Status: result.Status, Was: was, Output: result.Output, At: time.Now().UTC(), RunID: t.RunID,
	})
}

// heal concludes the health checks of a run or of a round: what is critical
// makes a repairing run due, and again after a growing while when one did not
// help. When a round finds that it is over a run is due too: what failed is
// stable then, and registers.
func (r *runner) heal(u *unit, cause model.Cause, repairing bool) {
	h := &u.health
	critical, failing := h.critical, h.failing
	h.critical = nil
	now := time.Now()
	h.next = now.Add(r.untilRound())
	r.setHealth(u.key, h.counts())
	// A run that did not come to the checks says nothing of them.
	unknown := len(critical) == 0 && h.counts().Critical > 0
	h.failing = unknown || len(critical) > 0
	switch {
	case !h.failing:
		h.repairAt = time.Time{}
		h.wait.Reset()
		if failing && !repairing {
			r.due[u.key] = wake{model.CauseHealth, now}.over(r.due[u.key])
		}
	case repairing && cause == model.CauseHealth:
		h.repairAt = now.Add(h.wait.Next())
	case unknown:
	case !now.Before(h.repairAt):
		h.refresh = u.current.refreshedBy(critical)
		r.due[u.key] = wake{model.CauseHealth, now}.over(r.due[u.key])
	}
}

func (h *health) counts() model.HealthCounts {
	var out model.HealthCounts
	for _, status := range h.statuses {
		out.Add(status)
	}

	return out
}

// refreshedBy gives the resources of which one of the critical checks asks for a
// refresh.
func (l *loaded) refreshedBy(critical []check) []model.Ref {
	var out []model.Ref
	for _, res := range l.graph.Resources() {
		if slices.ContainsFunc(res.Meta().HealthChecks, func(c model.HealthCheck) bool {
			return c.OnCritical == model.OnCriticalRefresh && slices.Contains(critical, check{res.Ref(), c.Name})
		}) {
			out = append(out, res.Ref())
		}
	}

	return out
}

// isMonitored says that health checks of a version are made between its runs.
func (l *loaded) isMonitored() bool {
	return l != nil && !l.Noop && slices.ContainsFunc(l.resolved.Resources, func(res *resource.Resource) bool {
		return len(res.Meta().HealthChecks) > 0 || res.Expand != nil
	})
}

// forgetChecks drops the statuses of checks that a version does not have.
func (u *unit) forgetChecks(l *loaded) {
	known := map[check]bool{}
	for _, res := range l.resolved.Resources {
		if res.Expand != nil {
			return // what it includes is not known yet
		}
		for _, c := range res.Meta().HealthChecks {
			known[check{res.Ref(), c.Name}] = true
		}
	}
	for key := range u.health.statuses {
		if !known[key] {
			delete(u.health.statuses, key)
		}
	}
}
