package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// CurrentResults finds the newest result of each resource in reports, and whether it is still valid: later runs do
// not report stable resources and only count unchanged results. The zero value is ready.
type CurrentResults struct {
	results map[resourceID]targets.Result
	runs    map[manifestID]*model.Run
	// ofNode counts the results of each node.
	ofNode map[string]nodeUsage
}

// nodeUsage counts the resources and manifests of a node with a result. full means that the node has more.
type nodeUsage struct {
	resources, manifests int
	full                 bool
}

// MaxResources limits the resources of a node with a result, maxManifests the manifests, because nodes choose
// both.
const (
	MaxResources = 50_000
	maxManifests = 2_000
)

// admit reports whether another resource or manifest of a node fits.
func (c *CurrentResults) admit(node string, resources, manifests int) bool {
	if c.ofNode == nil {
		c.ofNode = map[string]nodeUsage{}
	}
	n := c.ofNode[node]
	fits := n.resources+resources <= MaxResources && n.manifests+manifests <= maxManifests
	if fits {
		n.resources, n.manifests = n.resources+resources, n.manifests+manifests
	}
	n.full = n.full || !fits
	c.ofNode[node] = n

	return fits
}

// Full returns the nodes with omitted results.
func (c *CurrentResults) Full() []string {
	var out []string
	for node, n := range c.ofNode {
		if n.full {
			out = append(out, node)
		}
	}

	return out
}

type manifestID struct{ node, manifest string }

type resourceID struct {
	manifestID
	resource string
}

// AddResult adds a result, in any order. It retains one of two results with the same time.
func (c *CurrentResults) AddResult(r targets.Result) {
	id := resourceID{manifestID{r.Node, r.Manifest}, r.Resource}
	before, has := c.results[id]
	if has && before.Time.After(r.Time) || !has && !c.admit(r.Node, 1, 0) {
		return
	}
	if c.results == nil {
		c.results = map[resourceID]targets.Result{}
	}
	c.results[id] = r
}

// AddRun adds the summary of a run on a node, in any order.
func (c *CurrentResults) AddRun(node string, r model.Run) {
	if !isWhole(&r) {
		return
	}
	id := manifestID{node, r.Manifest}
	before := c.runs[id]
	if before != nil && before.Started.After(r.Started) || before == nil && !c.admit(node, 0, 1) {
		return
	}
	if c.runs == nil {
		c.runs = map[manifestID]*model.Run{}
	}
	r.Node, r.Errors = node, slices.Clone(r.Errors)
	c.runs[id] = &r
}

// isWhole reports whether a run reached all resources of its manifest. Runs for drift and health checks run
// some of them, and a run of an invalid manifest none.
func isWhole(r *model.Run) bool {
	return r.Cause != model.CauseDrift && r.Cause != model.CauseHealth && !r.Refused && r.Counts.Total > 0
}

// Rows returns the newest results by node, manifest and resource. It omits resources that another revision
// may not contain.
func (c *CurrentResults) Rows() []targets.Result {
	var out []targets.Result
	for id, r := range c.results {
		if r, holds := asOf(r, c.runs[id.manifestID]); holds {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b targets.Result) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Resource, b.Resource))
	})

	return out
}

// asOf returns a result as of the newest run of its manifest, or nil if the result is unknown.
func asOf(r targets.Result, run *model.Run) (now targets.Result, holds bool) {
	switch {
	case run == nil, r.RunID == run.RunID, r.Time.After(run.Started.Add(run.Duration)), isCounted(r, run):
		return r, true
	case r.Revision != run.Revision:
		return r, false
	default:
		return targets.Result{
			Node: r.Node, Time: nodeTime(run.Started.Add(run.Duration)), Manifest: r.Manifest, Revision: r.Revision, Type: r.Type, Name: r.Name, Resource: r.Resource, Provider: r.Provider,
			Alias: r.Alias, Outcome: string(model.OutcomeStable), Cause: string(run.Cause), RunID: run.RunID, Noop: run.Noop,
		}, true
	}
}

// isCounted reports whether the summary of a run shows that an earlier result was unchanged.
func isCounted(r targets.Result, run *model.Run) bool {
	switch model.Outcome(r.Outcome) {
	case model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed:
		return false // reported in each run
	}
	isNamed := slices.ContainsFunc(run.Unchanged, func(u model.Unchanged) bool { return u.RunID == r.RunID })
	if !isNamed {
		return len(run.Unchanged) >= maxUnchanged
	}
	listed := 0
	for _, text := range run.Errors {
		if strings.Contains(text, "#") {
			listed++
		}
	}
	if r.Outcome != string(model.OutcomeFailed) || run.Counts.Failed > listed {
		return true
	}

	// The run contains the errors of all resources, and one of several failures may be fixed.
	return slices.ContainsFunc(run.Errors, func(text string) bool { return strings.Contains(text, r.Resource+":") })
}

// ResultsSince returns the earliest time of the reports that are needed for the results at a time: each
// result is reported again within a day.
func ResultsSince(now time.Time) time.Time { return now.Add(-26 * time.Hour) }
