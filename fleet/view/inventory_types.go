package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"
)

// NodeQuery selects and sorts nodes. What is empty selects all.
type NodeQuery struct {
	// On is a target expression (fleet.CompileTarget), Search a part of a name, a host, a
	// group or a label, State a fleet.NodeStatus.
	On     string
	Search string
	State  fleet.Status
	// Sort is one of name, state, since, heard, version, host; empty is name.
	Sort       string
	Descending bool
	Offset     int
	// Limit is the most rows, 0 for 100.
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
	// Reason is why it is not ok, empty where it is.
	Reason string `json:"reason,omitempty"`
	Outbox int    `json:"outbox"`
}

// ManifestQuery selects the nodes of a manifest.
type ManifestQuery struct {
	Name string
	// Status selects nodes by that of the manifest there; empty selects all to which it applies.
	Status fleet.Status
	Offset int
	// Limit is the most nodes, 0 for 100.
	Limit int
}

// NodeList is a part of the nodes that a query selects.
type nodeList struct {
	Rows []NodeRow
	// Known is how many nodes there are, Matching how many the query selects.
	Known, Matching int
	// States counts what the query selects but for its state.
	States []State
	// Undecided are nodes of which nobody knows whether they match, by name.
	Undecided []fleet.Undecided
	// Warnings are the warnings of fleet.Selection.
	Warnings []string
}
