package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Forget makes the next overview a new one.
func (f *Fleet) Forget() { f.overview.made = time.Time{} }

// The event log for tests.
type (
	ActivityLog     = activityLog
	ActivityOptions = activityOptions
)

// NewActivityLog returns an empty event log.
func NewActivityLog(o ActivityOptions) *ActivityLog { return newActivityLog(o) }

// FoundRuns returns how many runs are found by their ids.
func (l *activityLog) FoundRuns() int { return len(l.runs.byID) }

// SetPatience changes how long an expression may take that needs no facts.
func (a *inventory) SetPatience(most time.Duration) { a.selector.plainPatience = most }

// Shared returns how many bytes have the texts that nodes have in common.
func (a *inventory) Shared() (sum int) {
	for text := range a.states.strings {
		sum += len(text)
	}

	return sum
}

// The nodes of the view for tests.
type (
	Inventory        = inventory
	InventoryOptions = inventoryOptions
)

// NewInventory returns an inventory without nodes.
func NewInventory(o InventoryOptions) *Inventory { return newInventory(o) }

// SummaryFrom calls summaryFrom.
func SummaryFrom(nodes []*Node, manifest func(node int, key string) model.ManifestState, all *fleet.Assigned, version string, now time.Time) Summary {
	return summaryFrom(nodes, manifest, all, version, now)
}
