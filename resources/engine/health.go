package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// errCritical is a resource of which a health check is critical.
var errCritical = errors.New("is critical")

// conclude makes the health checks of a resource after its turn, and ends it.
func (r *run) conclude(ctx context.Context, n *graph.Node, t *model.Transaction) {
	interrupted := false
	if state := r.observer.State(n); state != nil && !t.Skipped {
		t.FinalEnsure = state.State().Ensure
	}
	if r.checks.isMade(n) && !t.Failed && !t.Skipped {
		results, ahead := r.checks.made[n.Ref]
		if ahead {
			t.Timestamp = t.Timestamp.Add(-longest(results))
		} else {
			results = r.checks.of(ctx, []*graph.Node{n})[0]
		}
		made := slices.DeleteFunc(slices.Clone(results), func(h model.HealthResult) bool { return h.Status == "" })
		r.judge(ctx, n, t, made)
		if interrupted = len(made) < len(results); interrupted {
			r.interruptChecks(ctx, n, t)
		}
	}
	r.recorder.end(n, t, interrupted)
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
	t.SkipReason = "its health checks were broken off: " + r.Stopped
	switch {
	case t.Failed:
	case t.Changed || t.Refreshed:
		r.report.AddError(n.Ref.String() + ": " + t.SkipReason)
	default:
		t.NotRun = true
	}
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
		r.recorder.fail(ctx, n, t, err)
	}
}

// checks makes the health checks of a run.
type checks struct {
	checker Checker
	// env is added to the environment of their commands.
	env   []string
	terms *plan.Terms
	// made are the results of checks that were made ahead of the turns.
	made map[model.Ref][]model.HealthResult
}

// isMade reports whether the health checks of a resource are made in this run:
// not in noop. Where nothing is changed anyway its own noop does not count, but an
// agent, which looks by itself between runs, makes those that its runs make.
func (c *checks) isMade(n *graph.Node) bool {
	if len(n.Resource.Meta().HealthChecks) == 0 || c.terms.Scope.Noop {
		return false
	}
	asked, own := c.terms.Scope.HealthCheckOnly && !c.terms.Cause.IsUnasked(), n.Resource.Scope

	return asked || (own.HealthCheckOnly && !own.Noop) || !c.terms.IsNoop(n)
}

// ahead makes all health checks of a run that does nothing else, so that one that
// hangs does not hold up the others.
func (c *checks) ahead(ctx context.Context, all []*graph.Node) {
	if !c.terms.Scope.HealthCheckOnly {
		return
	}
	var nodes []*graph.Node
	for _, n := range all {
		if c.isMade(n) && n.Resource.Excluded == "" {
			nodes = append(nodes, n)
		}
	}
	c.made = make(map[model.Ref][]model.HealthResult, len(nodes))
	for i, results := range c.of(ctx, nodes) {
		c.made[nodes[i].Ref] = results
	}
}

// of makes the health checks of nodes. They are broken off when the run stops,
// because they change nothing.
func (c *checks) of(ctx context.Context, nodes []*graph.Node) [][]model.HealthResult {
	var all []model.HealthCheck
	for _, n := range nodes {
		all = append(all, n.Resource.Meta().HealthChecks...)
	}
	results := notMade(all)
	if c.checker != nil {
		results = c.checker.CheckAll(ctx, all, c.env)
	}
	out := make([][]model.HealthResult, len(nodes))
	for i, n := range nodes {
		count := len(n.Resource.Meta().HealthChecks)
		out[i], results = results[:count], results[count:]
	}

	return out
}

// notMade returns the results of checks that nobody can make.
func notMade(all []model.HealthCheck) []model.HealthResult {
	out := make([]model.HealthResult, len(all))
	for i, c := range all {
		out[i] = model.HealthResult{Name: c.Name, Format: c.Format, Status: model.HealthUnknown, Output: "health checks are not made here"}
	}

	return out
}
