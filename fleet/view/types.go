package view

import (
	"time"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// Progress describes how complete the view is. Pages show it until the view is complete.
type Progress struct {
	// Nodes means that the states of all nodes and all assignments are known, and with them the last run of
	// each manifest on each node. LastRuns means that the newest run of each node and outcome is known.
	// History means that all retained reports were read.
	Nodes    bool `json:"nodes"`
	LastRuns bool `json:"last_runs"`
	History  bool `json:"history"`
	// Since is the time from which all reports are known, zero for none.
	Since time.Time `json:"since,omitzero"`
	// BlindSince is the time since which no data about nodes arrives, zero if data arrives. States of nodes are the
	// last known states then.
	BlindSince time.Time `json:"blind_since,omitzero"`
	// Problems are the reasons why the view may be outdated, such as a lost connection to NATS.
	Problems []string `json:"problems"`
	// Notice describes an event after which the data is current but some is lost, such as a restored stream, with its time.
	Notice string `json:"notice,omitempty"`
	// Incomplete lists the missing parts of the complete history: reports before the newest 2 GiB, older
	// reports of nodes with a full share, and unreadable messages.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Overview is the overview of the fleet.
type Overview struct {
	Progress Progress `json:"progress"`
	Summary
	// History contains the counts of the intervals, oldest first.
	History []Point `json:"over_time"`
	// Top are the resources that fail, drift and flap most.
	Top Top `json:"top"`
	// Webhooks are the webhooks with failed, late or incomplete deliveries, with the reason, by name.
	Webhooks []WebhookProblem `json:"webhooks"`
}

// NodePage is a page of nodes.
type NodePage struct {
	Progress Progress  `json:"progress"`
	Rows     []NodeRow `json:"rows"`
	// Known is the number of nodes, Matching the number of selected nodes.
	Known    int `json:"known"`
	Matching int `json:"matching"`
	// States counts the nodes that the query without its state selects.
	States []State `json:"states"`
	// Undecided are the names of nodes for which the query cannot be evaluated.
	Undecided []targets.Undecided `json:"undecided"`
	// Warnings are the warnings of targets.Selection.
	Warnings []string `json:"warnings"`
}

// NodeDetail is the data of one node.
type NodeDetail struct {
	Progress Progress `json:"progress"`
	Node
	// Runs are its newest runs, Events its newest events, newest first.
	Runs   []RunRow `json:"runs"`
	Events []Event  `json:"events"`
}

// ManifestRow is a manifest in a list, independent of its targets.
type ManifestRow struct {
	Manifest
	// Keys are its assignments, by key.
	Keys []Assigned `json:"keys"`
	// Changed is the time of the last assignment.
	Changed time.Time `json:"changed,omitzero"`
}

// Assigned is one assignment of a manifest.
type Assigned struct {
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Digest   string    `json:"digest,omitempty"`
	// By is the unverified author, empty if unknown.
	By string `json:"by,omitempty"`
	// Terms are the settings of the assignment, nil for none.
	Terms *model.Terms `json:"terms,omitempty"`
}

// ManifestDetail is the data of one manifest.
type ManifestDetail struct {
	Progress Progress `json:"progress"`
	ManifestRow
	// Nodes is a page of the selected nodes. Nodes that need attention come first. Matching is the number of
	// selected nodes.
	Nodes    []Assignment `json:"nodes"`
	Matching int          `json:"matching"`
	Failing  []Failure    `json:"failing"`
	Top      Top          `json:"top"`
	Runs     []RunRow     `json:"runs"`
}

// RunDetail is one run with its reported transactions.
type RunDetail struct {
	Progress Progress `json:"progress"`
	// Run is nil until its summary is known.
	Run          *model.Run          `json:"run"`
	Node         string              `json:"node"`
	Transactions []model.Transaction `json:"transactions"`
	// More is the number of omitted transactions.
	More int `json:"more"`
	// Request is the id of the request that changed the resource, empty for a run. Run is nil if it is set.
	Request string `json:"request,omitempty"`
}

// EventPage is a page of events, newest first.
type EventPage struct {
	Progress Progress `json:"progress"`
	Events   []Event  `json:"events"`
	// More means that older events are retained.
	More bool `json:"more"`
}

// RequestDetail is a request with the nodes that did not answer it.
type RequestDetail struct {
	Progress Progress `json:"progress"`
	RequestRow
	// Missing are the sorted names of current targets that did not answer. Others are the nodes that answered
	// without being targets. Both are empty if Unknown has the reason.
	Missing []string `json:"missing"`
	Others  []string `json:"others"`
	Unknown string   `json:"unknown,omitempty"`
	// SameID means that a run request and another request have the id. This is one of them.
	SameID bool `json:"same_id,omitempty"`
	// Answered are the sorted names of known nodes that answered.
	Answered []string `json:"-"`
}
