package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
)

// NodeQuery selects and sorts nodes. Empty fields select all.
type NodeQuery struct {
	// On is a target expression (targets.Compile), Search a part of a name, a host, a
	// group or a label, State a fleet.NodeStatus.
	On     string
	Search string
	State  fleet.Status
	// Sort is one of name, state, since, heard, version, host; empty is name.
	Sort       string
	Descending bool
	Offset     int
	// Limit is the maximum number of rows, 0 for 100.
	Limit int
}

// NodeRow is a node in a list.
type NodeRow struct {
	Node    string            `json:"node"`
	Host    string            `json:"host"`
	State   fleet.Status      `json:"state"`
	Since   time.Time         `json:"since,omitzero"`
	Heard   time.Time         `json:"heard,omitzero"`
	Version string            `json:"version"`
	Groups  []string          `json:"groups"`
	Labels  map[string]string `json:"labels"`
	Tally   fleet.Tally       `json:"manifests"`
	// Reason is the reason why the node is not OK, empty if it is.
	Reason string `json:"reason,omitempty"`
	Outbox int    `json:"outbox"`
}

// ManifestQuery selects the nodes of a manifest.
type ManifestQuery struct {
	Name string
	// Status selects nodes by the status of the manifest. If it is empty, it selects all nodes of the
	// manifest.
	Status fleet.Status
	Offset int
	// Limit is the maximum number of nodes, 0 for 100.
	Limit int
}

// nodeList is a page of the selected nodes.
type nodeList struct {
	Rows []NodeRow
	// Known is the number of nodes, Matching the number of selected nodes.
	Known, Matching int
	// States counts the nodes that the query without its state selects.
	States []State
	// Undecided are the names of nodes for which the query cannot be evaluated.
	Undecided []targets.Undecided
	// Warnings are the warnings of targets.Selection.
	Warnings []string
}
