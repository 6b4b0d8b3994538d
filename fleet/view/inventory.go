package view

import (
	"context"
	"iter"
	"sync"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// inventoryOptions configure Nodes.
type inventoryOptions struct {
	// Facts yields the facts of some nodes, see targets.Selector.
	Facts func(ctx context.Context, nodes []string) iter.Seq2[model.NodeFacts, error]
	// Inventories yields the inventories of some nodes, see targets.Selector.
	Inventories func(ctx context.Context, nodes []string) iter.Seq2[model.Inventory, error]
	// Changed is called after a change that readers see. It must not call back.
	Changed func()
}

// inventory are the nodes of a fleet, compared with its assignments. They are safe for concurrent use. Do not
// change returned values.
type inventory struct {
	options inventoryOptions
	// selector evaluates expressions of users, reported evaluates states of nodes.
	selector, reported *targetEvaluator

	mu     sync.RWMutex
	states nodeStates
	nodes  nodeTable
	// listed means that all nodes are known, isAssigned that all assignments are known.
	listed, isAssigned bool
	entries            *fleet.Assigned
	// statuses are the statuses of the last node. The next node reuses their memory.
	statuses []fleet.RolloutStatus
	// gaps are the periods without data, blind are the reasons for the current gap.
	gaps  gaps
	blind map[string]bool
}

// newInventory returns an empty list of nodes.
func newInventory(o inventoryOptions) *inventory {
	return &inventory{options: o, selector: newTargetEvaluator(), reported: newReportedEvaluator(), states: newNodeStates(), nodes: newNodeTable(), entries: fleet.NewAssigned(nil), blind: map[string]bool{}}
}

// IsComplete reports whether the states of all nodes and all assignments are known.
func (a *inventory) IsComplete() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.listed && a.isAssigned
}

// IsKnown reports whether a node exists.
func (a *inventory) IsKnown(name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.nodes.byName[name] != nil
}

// now returns the nodes by name and the current assignments.
func (a *inventory) now() ([]*nodeState, *fleet.Assigned) {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.nodes.all(), a.entries
}
