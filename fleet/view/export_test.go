package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// ForgetOverview makes the next overview a new one.
func (f *Fleet) ForgetOverview() { f.overview.made = time.Time{} }

// FoundRuns returns the number of runs that are found by their ids.
func (l *activityLog) FoundRuns() int { return len(l.runs.byID) }

// SetPatience changes the time limit of expressions without facts.
func (a *inventory) SetPatience(most time.Duration) { a.selector.plainPatience = most }

// KnownSummary returns the overview of nodes that a view knows.
func KnownSummary(nodes []model.Node, all *fleet.Assigned, version string, now time.Time) Summary {
	a := newInventory(Options{}, func() {})
	a.entries = all
	for _, n := range nodes {
		a.nodes.set(a.judge(n, compactManifests(n.Manifests), 0, now))
	}

	return a.summary(version, now)
}
