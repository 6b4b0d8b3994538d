package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// Current finds the newest result of each resource among reports, and which of them still hold:
// a resource that has become stable is in no report, and a result that is the same again is only
// counted. The zero value is ready.
type CurrentResults struct {
	results map[resourceID]targets.Result
	runs    map[manifestID]*model.Run
	// ofNode counts those of each node.
	ofNode map[string]nodeUsage
}

// known is of how many resources and manifests of a node something is known, and whether it has more.
type nodeUsage struct {
	resources, manifests int
	full                 bool
}

// MaxResources is of how many resources of a node the result is known, maxManifests of how many manifests:
// nodes name both.
const (
	MaxResources = 50_000
	maxManifests = 2_000
)

// admit reports whether there is a place for another resource, or manifest, of a node.
func (c *CurrentResults) admit(node string, resources, manifests int) bool {
	n := c.ofNode[node]
	n.resources, n.manifests = n.resources+resources, n.manifests+manifests
	fits := n.resources <= MaxResources && n.manifests <= maxManifests
	if !fits {
		n = c.ofNode[node]
		n.full = true
	}
	if c.ofNode == nil {
		c.ofNode = map[string]nodeUsage{}
	}
	c.ofNode[node] = n

	return fits
}

// Full returns the nodes of which something was left out, since they have more than is known.
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

// AddResult adds a result, in any order. One of two of the same time is kept.
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

// isWhole reports whether a run came to all resources of its manifest: those for drift and health
// run some of them, and one of a manifest that is not valid none.
func isWhole(r *model.Run) bool {
	return r.Cause != model.CauseDrift && r.Cause != model.CauseHealth && !r.Refused && r.Counts.Total > 0
}

// Rows returns the newest results, by node, manifest and resource, without those of resources
// that another revision may not have any more.
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

// asOf returns a result as of the newest run of its manifest, which is nil where it is not known.
func asOf(r targets.Result, run *model.Run) (now targets.Result, holds bool) {
	switch {
	case run == nil, r.RunID == run.RunID, r.Time.After(run.Started.Add(run.Duration)), isCounted(r, run):
		return r, true
	case r.Revision != run.Revision:
		return r, false
	default:
		return targets.Result{
			Node: r.Node, Time: run.Started.Add(run.Duration), Manifest: r.Manifest, Revision: r.Revision, Type: r.Type, Name: r.Name, Resource: r.Resource, Provider: r.Provider,
			Alias: r.Alias, Outcome: string(model.OutcomeStable), Cause: string(run.Cause), RunID: run.RunID, Noop: run.Noop,
		}, true
	}
}

// isCounted reports whether a run had an earlier result again, as far as its summary has that.
func isCounted(r targets.Result, run *model.Run) bool {
	switch model.Outcome(r.Outcome) {
	case model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed:
		return false // it is reported each time
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

	// The run has the errors of all resources: one of several failures may have been mended.
	return slices.ContainsFunc(run.Errors, func(text string) bool { return strings.Contains(text, r.Resource+":") })
}

// ResultsSince returns when reports begin to be read for what holds at a time: each result is reported
// again within a day.
func ResultsSince(now time.Time) time.Time { return now.Add(-26 * time.Hour) }
