package view

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/summary"
	"github.com/musterfleet/muster/model"
)

const (
	// factsAge is for how long the nodes stay selected that an expression selects by facts: all
	// facts of a fleet are read for it.
	factsAge = 30 * time.Second
	// factsPatience is how long reading them may take.
	factsPatience = 20 * time.Second
	// maxSelections is how many of these expressions are remembered.
	maxSelections = 16
)

// factsCache has what expressions selected that depend on facts. Who holds its lock reads them,
// the others wait for it.
type factsCache struct {
	sync.Mutex
	byExpression map[string]selection
}

// selection is what an expression selected.
type selection struct {
	made      time.Time
	matches   map[string]bool
	undecided []fleet.Undecided
}

// selectNodes returns which nodes an expression matches, and those of which nobody knows.
func (f *Fleet) selectNodes(on string, all []*summary.Node) (selection, error) {
	e, err := fleet.CompileTarget(on)
	if err != nil {
		return selection{}, err
	}
	nodes, byName := make([]model.Node, len(all)), make(map[string]*summary.Node, len(all))
	for i, n := range all {
		nodes[i], byName[n.Node.Node] = n.Node, n
	}
	ctx, cancel := context.WithTimeout(context.Background(), factsPatience)
	defer cancel()
	choose := func() (selection, error) {
		found, err := fleet.Selector{
			Statuses: func(n model.Node) []fleet.RolloutStatus { return rolloutsOf(byName[n.Node]) }, Facts: f.options.Facts,
		}.Select(ctx, e, nodes)

		return selection{time.Now(), found.Names(), found.Undecided}, err
	}
	if !e.UsesFacts() {
		return choose()
	}
	c := &f.facts
	c.Lock()
	defer c.Unlock()
	if known := c.byExpression[on]; time.Since(known.made) < factsAge {
		return known, nil
	}
	found, err := choose()
	if err != nil {
		return selection{}, fmt.Errorf("read the facts of nodes: %w", err)
	}
	if c.byExpression == nil || len(c.byExpression) >= maxSelections {
		c.byExpression = map[string]selection{}
	}
	c.byExpression[on] = found

	return found, nil
}
