package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// errCritical is a resource of which a health check is critical.
var errCritical = errors.New("is critical")

// conclude makes the health checks of a resource after its turn, and ends it.
func (r *run) conclude(ctx context.Context, n *node, t *model.Transaction) {
	if r.isChecked(n) && !t.Failed && !t.Skipped {
		results, ahead := r.health[n.ref]
		if ahead {
			t.Timestamp = t.Timestamp.Add(-longest(results))
		} else {
			results = r.check(ctx, []*node{n})[0]
		}
		made := slices.DeleteFunc(slices.Clone(results), func(h model.HealthResult) bool { return h.Status == "" })
		r.judge(ctx, n, t, made)
		if len(made) < len(results) {
			r.breakOff(ctx, n, t)
		}
	}
	r.end(n, t)
}

// longest is how long checks took that were made at the same time.
func longest(results []model.HealthResult) time.Duration {
	var out time.Duration
	for _, h := range results {
		out = max(out, h.Duration)
	}

	return out
}

// breakOff records that not all health checks of a resource were made, so that
// nobody takes it, or the run, for fine.
func (r *run) breakOff(ctx context.Context, n *node, t *model.Transaction) {
	r.checkStop(ctx)
	r.results[n.at].brokenOff = true
	t.SkipReason = "its health checks were broken off: " + r.stopped
	switch {
	case t.Failed:
	case t.Changed || t.Refreshed:
		r.summary.Errors = append(r.summary.Errors, n.ref.String()+": "+t.SkipReason)
	default:
		t.NotRun = true
	}
}

// isChecked says that the health checks of a resource are made in this run: not in
// noop. Where nothing is changed anyway its own noop says nothing, but an agent,
// which looks by itself between runs, makes those that its runs make.
func (r *run) isChecked(n *node) bool {
	if len(n.res.Meta().HealthChecks) == 0 || r.opts.Env.Scope.Noop {
		return false
	}
	asked := r.opts.Env.Scope.HealthCheckOnly && !r.unasked()

	return asked || (n.res.Scope.HealthCheckOnly && !n.res.Scope.Noop) || !r.isNoop(n)
}

// judge records what came of health checks. Only a critical one fails the resource.
func (r *run) judge(ctx context.Context, n *node, t *model.Transaction, results []model.HealthResult) {
	for _, h := range results {
		said, _, _ := strings.Cut(h.Output, "\n")
		h.Output = r.redact.Redact(h.Output)
		if n.res.Sensitive() {
			h.Output, said = "", ""
		}
		t.HealthCheck = append(t.HealthCheck, h)
		if h.Status != model.HealthCritical {
			continue
		}
		err := fmt.Errorf("health check %q %w", h.Name, errCritical)
		if said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		r.fail(ctx, n, t, err)
	}
}

// checkAhead makes all health checks of a run that does nothing else, so that
// one that hangs does not hold up the others.
func (r *run) checkAhead(ctx context.Context) {
	if !r.opts.Env.Scope.HealthCheckOnly {
		return
	}
	var nodes []*node
	for _, n := range r.graph.nodes {
		if r.isChecked(n) && n.res.Excluded == "" {
			nodes = append(nodes, n)
		}
	}
	r.health = make(map[model.Ref][]model.HealthResult, len(nodes))
	for i, results := range r.check(ctx, nodes) {
		r.health[nodes[i].ref] = results
	}
}

// check makes the health checks of resources. They are broken off when the run
// is to stop, because they change nothing.
func (r *run) check(ctx context.Context, nodes []*node) [][]model.HealthResult {
	ctx, cancel := r.untilStopped(ctx)
	defer cancel(nil)
	var checks []model.HealthCheck
	for _, n := range nodes {
		checks = append(checks, n.res.Meta().HealthChecks...)
	}
	results := notMade(checks)
	if r.opts.Checker != nil {
		results = r.opts.Checker.CheckAll(ctx, checks, r.opts.Env.RunEnv)
	}
	out := make([][]model.HealthResult, len(nodes))
	for i, n := range nodes {
		count := len(n.res.Meta().HealthChecks)
		out[i], results = results[:count], results[count:]
	}

	return out
}

// notMade gives the results of checks that nobody can make.
func notMade(checks []model.HealthCheck) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	for i, c := range checks {
		out[i] = model.HealthResult{Name: c.Name, Format: c.Format, Status: model.HealthUnknown, Output: "health checks are not made here"}
	}

	return out
}
