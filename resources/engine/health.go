package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/engine/report"
)

// errCritical is a resource of which a health check is critical.
var errCritical = errors.New("is critical")

// conclude makes the health checks of a resource after its turn, and ends it.
func (r *run) conclude(ctx context.Context, n *graph.Node, t *model.Transaction) {
	interrupted := false
	if r.isChecked(n) && !t.Failed && !t.Skipped {
		results, ahead := r.checks[n.Ref]
		if ahead {
			t.Timestamp = t.Timestamp.Add(-longest(results))
		} else {
			results = r.check(ctx, []*graph.Node{n})[0]
		}
		made := report.Made(results)
		r.judge(ctx, n, t, made)
		if interrupted = len(made) < len(results); interrupted {
			r.interruptChecks(ctx, n, t)
		}
	}
	r.end(n, t, interrupted)
}

// longest returns how long checks took that were made at the same time.
func longest(results []model.HealthResult) time.Duration {
	var out time.Duration
	for _, h := range results {
		out = max(out, h.Duration)
	}

	return out
}

// interruptChecks records that not all health checks of a resource were made, so
// that nobody takes it, or the run, for healthy.
func (r *run) interruptChecks(ctx context.Context, n *graph.Node, t *model.Transaction) {
	r.checkStop(ctx)
	t.SkipReason = "its health checks were broken off: " + r.up.Stopped
	switch {
	case t.Failed:
	case t.Changed || t.Refreshed:
		r.report.AddError(n.Ref.String() + ": " + t.SkipReason)
	default:
		t.NotRun = true
	}
}

// isChecked reports whether the health checks of a resource are made in this run:
// not in noop. Where nothing is changed anyway its own noop does not count, but an
// agent, which looks by itself between runs, makes those that its runs make.
func (r *run) isChecked(n *graph.Node) bool {
	if len(n.Resource.Meta().HealthChecks) == 0 || r.up.Scope.Noop {
		return false
	}
	asked, own := r.up.Scope.HealthCheckOnly && !plan.IsUnasked(r.opts.Cause), n.Resource.Scope

	return asked || (own.HealthCheckOnly && !own.Noop) || !r.IsNoop(n)
}

// judge records the results of health checks. Only a critical one fails the resource.
func (r *run) judge(ctx context.Context, n *graph.Node, t *model.Transaction, results []model.HealthResult) {
	for _, h := range results {
		line, _, _ := strings.Cut(h.Output, "\n")
		h.Output = r.secrets.Redact(h.Output)
		if n.Resource.Sensitive() {
			h.Output, line = "", ""
		}
		t.HealthCheck = append(t.HealthCheck, h)
		if h.Status != model.HealthCritical {
			continue
		}
		err := fmt.Errorf("health check %q %w", h.Name, errCritical)
		if line != "" {
			err = fmt.Errorf("%w: %s", err, line)
		}
		r.fail(ctx, n, t, err)
	}
}

// checkAhead makes all health checks of a run that does nothing else, so that
// one that hangs does not hold up the others.
func (r *run) checkAhead(ctx context.Context) {
	if !r.up.Scope.HealthCheckOnly {
		return
	}
	var nodes []*graph.Node
	for _, n := range r.up.Graph.Nodes() {
		if r.isChecked(n) && n.Resource.Excluded == "" {
			nodes = append(nodes, n)
		}
	}
	r.checks = make(map[model.Ref][]model.HealthResult, len(nodes))
	for i, results := range r.check(ctx, nodes) {
		r.checks[nodes[i].Ref] = results
	}
}

// check makes the health checks of nodes. They are broken off when the run stops,
// because they change nothing.
func (r *run) check(ctx context.Context, nodes []*graph.Node) [][]model.HealthResult {
	var checks []model.HealthCheck
	for _, n := range nodes {
		checks = append(checks, n.Resource.Meta().HealthChecks...)
	}
	results := notMade(checks)
	if r.opts.Checker != nil {
		results = r.opts.Checker.CheckAll(ctx, checks, r.opts.Env.RunEnv)
	}
	out := make([][]model.HealthResult, len(nodes))
	for i, n := range nodes {
		count := len(n.Resource.Meta().HealthChecks)
		out[i], results = results[:count], results[count:]
	}

	return out
}

// notMade returns the results of checks that nobody can make.
func notMade(checks []model.HealthCheck) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	for i, c := range checks {
		out[i] = model.HealthResult{Name: c.Name, Format: c.Format, Status: model.HealthUnknown, Output: "health checks are not made here"}
	}

	return out
}
