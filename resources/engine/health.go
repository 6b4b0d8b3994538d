package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
)

var errCritical = errors.New("is critical")

// check runs the health checks of a resource, unless they ran before all resources. It reports
// whether some were interrupted.
func (r *run) check(ctx context.Context, n *plan.Node, t *model.Transaction) (interrupted bool) {
	results, ahead := r.checks.made[n.Ref]
	longest := time.Duration(0)
	if ahead {
		for _, h := range results {
			longest = max(longest, h.Duration)
		}
		t.Timestamp = t.Timestamp.Add(-longest)
	} else {
		results = r.checks.of(ctx, []*plan.Node{n})[0]
	}
	made := slices.DeleteFunc(slices.Clone(results), func(h model.HealthResult) bool { return h.Status == "" })
	r.judge(ctx, n, t, made)
	if interrupted = len(made) < len(results); interrupted {
		r.interruptChecks(ctx, n, t)
	}

	return interrupted
}

// interruptChecks records that some health checks of a resource did not run, so that the resource
// and the run do not appear healthy.
func (r *run) interruptChecks(ctx context.Context, n *plan.Node, t *model.Transaction) {
	r.checkStop(ctx)
	t.SkipReason = "its health checks were interrupted: " + r.Stopped
	switch {
	case t.Failed:
	case t.Changed || t.Refreshed:
		r.report.addError(n.Ref.String() + ": " + t.SkipReason)
	default:
		t.NotRun = true
	}
}

// judge records the results of health checks. Only a critical result fails the resource.
func (r *run) judge(ctx context.Context, n *plan.Node, t *model.Transaction, results []model.HealthResult) {
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

type checks struct {
	checker Checker
	// env is added to the environment of the commands.
	env   []string
	terms *plan.Terms
	// made are the results of checks that ran before the resources.
	made map[model.Ref][]model.HealthResult
}

// isMade reports whether the health checks of a resource run in this run. They do not run in noop.
// In a run that only checks, the noop of a resource does not disable them, except in the periodic
// checks of an agent.
func (c *checks) isMade(n *plan.Node) bool {
	if len(n.Resource.Meta().HealthChecks) == 0 || c.terms.Scope.Noop {
		return false
	}
	requested, own := c.terms.Scope.HealthCheckOnly && !c.terms.Cause.IsUnasked(), n.Resource.Scope

	return requested || (own.HealthCheckOnly && !own.Noop) || !c.terms.IsNoop(n)
}

// ahead runs all health checks of a run that only checks. They run concurrently, so that one slow
// check does not delay the others.
func (c *checks) ahead(ctx context.Context, all []*plan.Node) {
	if !c.terms.Scope.HealthCheckOnly {
		return
	}
	var nodes []*plan.Node
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

// of runs the health checks of nodes. They change nothing, so they are interrupted when the run
// stops.
func (c *checks) of(ctx context.Context, nodes []*plan.Node) [][]model.HealthResult {
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

// notMade returns unknown results, for a run without a checker.
func notMade(all []model.HealthCheck) []model.HealthResult {
	out := make([]model.HealthResult, len(all))
	for i, c := range all {
		out[i] = model.HealthResult{Name: c.Name, Format: c.Format, Status: model.HealthUnknown, Output: "health checks are not available here"}
	}

	return out
}
