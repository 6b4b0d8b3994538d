// Package inventory knows what a fleet is now: its nodes by what they reported last, and how each compares with what is
// assigned to it. Whoever follows the buckets tells it.
package view

import (
	"context"
	"iter"
	"sync"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// Options are what Nodes are made for.
type inventoryOptions struct {
	// Facts yields the facts of some nodes, see fleet.Selector.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of some nodes, see fleet.Selector.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
	// Changed is called when something changed that readers see. It must not call back.
	Changed func()
}

// Nodes are the nodes of a fleet, compared with its assignments. Its methods may be called from several goroutines;
// what they return is not changed any more, and must not be.
type inventory struct {
	options inventoryOptions
	// selector is for expressions that somebody writes, reported for those that nodes report.
	selector, reported *targetEvaluator

	mu     sync.RWMutex
	states nodeStates
	nodes  nodeTable
	// listed is that all nodes are known, isAssigned that all assignments are.
	listed, isAssigned bool
	entries            *fleet.Assigned
	// statuses are those of the last node, whose memory the next one takes.
	statuses []fleet.RolloutStatus
	// gaps are the periods without data, blind are the reasons for the current gap.
	gaps  gaps
	blind map[string]bool
}

// New returns nodes of which none is known.
func newInventory(o inventoryOptions) *inventory {
	return &inventory{options: o, selector: newTargetEvaluator(), reported: newReportedEvaluator(), states: newNodeStates(), nodes: newNodeTable(), entries: fleet.NewAssigned(nil), blind: map[string]bool{}}
}

// IsComplete reports whether the states of all nodes and all assignments are known.
func (a *inventory) IsComplete() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.listed && a.isAssigned
}

// IsKnown reports whether there is a node of a name.
func (a *inventory) IsKnown(name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.nodes.byName[name] != nil
}

// now returns the nodes by name, and the assignments with which they are compared.
func (a *inventory) now() ([]*nodeState, *fleet.Assigned) {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.nodes.all(), a.entries
}
