package fleetcmd

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/fleet"
)

// storage checks during a wait whether the server stores the states of nodes, and warns if it does not.
type storage struct {
	store *Store
	// warn prints a warning.
	warn func(text string)
	// warned are the printed warnings.
	warned map[string]bool
	// found is the result of the last check, nil before the first one.
	found *fleet.Unstored
	// isFailing is set after a check confirmed that states are not stored, isDoubtful also after a guess.
	isFailing, isDoubtful bool
}

// check asks the server and nodes, and prints each warning once. It does nothing if the nodes cannot be read.
func (c *storage) check(ctx context.Context) {
	nodes, err := c.store.Nodes(ctx)
	if err != nil {
		return // the statuses are shown
	}
	found := c.store.Unstored(ctx, nodes)
	c.found = &found
	c.isFailing = c.isFailing || !found.Since.IsZero()
	c.isDoubtful = c.isDoubtful || found.States != ""
	for _, text := range found.Lines() {
		if !c.warned[text] {
			c.warned[text] = true
			c.warn("the statuses may be old: " + text)
		}
	}
}

// mayLeave checks whether unreachable nodes may be left: their states are stored, so their agents do not run.
func (c *storage) mayLeave(ctx context.Context) bool {
	c.check(ctx)

	return !c.isFailing
}

// conclude checks the statuses at the end of a wait if some nodes are pending or unreachable, unless mayLeave has just
// ended the wait.
func (c *storage) conclude(ctx context.Context, statuses []fleet.RolloutStatus) {
	isOpen := func(one fleet.RolloutStatus) bool {
		return one.Status == fleet.StatusPending || one.Status == fleet.StatusUnreachable
	}
	hasJustChecked := c.found != nil && !c.isFailing
	if ctx.Err() == nil && !hasJustChecked && slices.ContainsFunc(statuses, isOpen) {
		c.check(ctx)
	}
}
