package fleetcmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
)

// appliesNowhere returns the error of a manifest that applies to none of its nodes.
func appliesNowhere(name string, names kvstore.Names, statuses []fleet.RolloutStatus) error {
	hint := "see " + names.Run("fleet group NODE --order")
	if !slices.ContainsFunc(statuses, func(s fleet.RolloutStatus) bool { return s.Status == fleet.StatusOverridden }) {
		hint = "check its condition, see " + names.Run("fleet facts NODE")
	}

	return fmt.Errorf("%s applies to none of %s: %s (%s)", name, print.Count(len(statuses), "node"), assign.ByStatus(statuses, fleet.StatusOverridden, fleet.StatusNotApplicable), hint)
}

// sayOutage prints a remark once for each outage of NATS.
func (w *Wait) sayOutage(err error) {
	if !w.isAway {
		w.isAway = true
		w.say(fmt.Sprintf("NATS does not answer, still waiting (%v)", cli.Plain(err)))
	}
}

// isOpen reports whether a node may still run the revision.
func isOpen(s fleet.RolloutStatus) bool {
	return s.Status == fleet.StatusPending || s.Status == fleet.StatusUnreachable
}

// checkStored checks whether the server stores the states of nodes, and prints each warning once. It does nothing if the
// nodes cannot be read.
func (w *Wait) checkStored(ctx context.Context) {
	nodes, err := w.store.Nodes(ctx)
	if err != nil {
		return // the statuses are shown
	}
	found := w.store.Unstored(ctx, nodes)
	w.isChecked = true
	w.isFailing = w.isFailing || !found.Since.IsZero()
	w.isDoubtful = w.isDoubtful || found.States != ""
	for _, text := range found.Lines() {
		if !w.warned[text] {
			w.warned[text] = true
			w.say("the statuses may be old: " + text)
		}
	}
}
