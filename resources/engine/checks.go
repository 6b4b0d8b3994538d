package engine

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
)

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
