package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/summary"
	"github.com/musterfleet/muster/model"
)

// Progress is how complete the view is: what is shown says so until it is.
type Progress struct {
	// Nodes is set once the states of all nodes and all assignments are known, and with them what
	// came of the last run of each manifest on each node; LastRuns once the report of the newest
	// run of each node and outcome is, History once every stored report that is kept was
	// read.
	Nodes    bool `json:"nodes"`
	LastRuns bool `json:"last_runs"`
	History  bool `json:"history"`
	// Since is the time of the oldest report of which all later ones are known, zero for none.
	Since time.Time `json:"since,omitzero"`
	// Problems are why it may not be up to date: NATS cannot be reached since.
	Problems []string `json:"problems"`
	// Incomplete is what the history lacks, although all was read that the stream has: reports of nodes
	// of which it keeps only the newest, and messages that cannot be read, and how many.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Overview is the fleet as a whole.
type Overview struct {
	Progress Progress `json:"progress"`
	summary.Summary
	// History has what happened, by time, oldest first.
	History []Point `json:"over_time"`
	// Top are the resources that fail, drift and flap most.
	Top Top `json:"top"`
	// Webhooks are those that are not delivered, with the reason, by name.
	Webhooks []WebhookProblem `json:"webhooks"`
}

// Point counts what was reported within one interval of time, by the clock of the server: runs,
// of these such as changed something or failed, and repairs of drift.
type Point struct {
	At       time.Time `json:"at"`
	Runs     int       `json:"runs"`
	Changed  int       `json:"changed"`
	Failed   int       `json:"failed"`
	Repaired int       `json:"repaired"`
}

// Top are the resources that need attention most, the most frequent first; of those that fail, the ones that
// do on most nodes.
type Top struct {
	Failing  []TopResource `json:"failing"`
	Drifting []TopResource `json:"drifting"`
	Flapping []TopResource `json:"flapping"`
}

// TopResource is a resource of a manifest, and how often something happened to it since
// Progress.Since, or within the time that is kept. A failure that goes on is reported once a day, and counts
// as often.
type TopResource struct {
	Manifest string    `json:"manifest"`
	Resource string    `json:"resource"`
	Count    int       `json:"count"`
	Last     time.Time `json:"last"`
	// Text is the newest error, or what drifted.
	Text string `json:"text"`
	summary.Members
}

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

// NodePage is a page of nodes.
type NodePage struct {
	Progress Progress  `json:"progress"`
	Rows     []NodeRow `json:"rows"`
	// Known is how many nodes there are, Matching how many the query selects.
	Known    int `json:"known"`
	Matching int `json:"matching"`
	// States counts what the query selects but for its state.
	States []summary.State `json:"states"`
	// Undecided are nodes of which nobody knows whether they match, by name.
	Undecided []fleet.Undecided `json:"undecided"`
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

// NodeDetail is what is known of one node.
type NodeDetail struct {
	Progress Progress `json:"progress"`
	summary.Node
	// Runs are its newest, the newest first, Events what it reported last.
	Runs   []RunRow `json:"runs"`
	Events []Event  `json:"events"`
}

// ManifestRow is a manifest in a list, whatever its targets.
type ManifestRow struct {
	summary.Manifest
	// Keys are its assignments, by key.
	Keys []Assigned `json:"keys"`
	// Changed is when one was assigned last.
	Changed time.Time `json:"changed,omitzero"`
}

// Assigned is one assignment of a manifest.
type Assigned struct {
	Key      string    `json:"key"`
	Revision uint64    `json:"revision"`
	Time     time.Time `json:"time"`
	Digest   string    `json:"digest,omitempty"`
	// By is who assigned it, as they said; empty where they did not.
	By string `json:"by,omitempty"`
	// Terms are whether and how nodes run it, nil where it has none.
	Terms *model.Terms `json:"terms,omitempty"`
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

// ManifestDetail is what is known of one manifest.
type ManifestDetail struct {
	Progress Progress `json:"progress"`
	ManifestRow
	// Nodes are a page of those that are selected, those that need attention first, Matching
	// how many are.
	Nodes    []summary.Assignment `json:"nodes"`
	Matching int                  `json:"matching"`
	Failing  []summary.Failure    `json:"failing"`
	Top      Top                  `json:"top"`
	Runs     []RunRow             `json:"runs"`
}

// RunRow is a run in a list. Outcome is empty while only some of its reports are known.
type RunRow struct {
	RunID    string        `json:"run_id"`
	Node     string        `json:"node"`
	Manifest string        `json:"manifest"`
	Revision uint64        `json:"revision"`
	Cause    model.Cause   `json:"cause"`
	Outcome  model.Outcome `json:"outcome,omitempty"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration"`
	Counts   model.Counts  `json:"counts"`
	Error    string        `json:"error,omitempty"`
}

// RunDetail is one run with the transactions that it reported.
type RunDetail struct {
	Progress Progress `json:"progress"`
	// Run is nil while its summary is not known.
	Run          *model.Run          `json:"run"`
	Node         string              `json:"node"`
	Transactions []model.Transaction `json:"transactions"`
	// More is how many of them are not shown.
	More int `json:"more"`
}

// Event is a report in the feed.
type Event struct {
	// Seq is its place in the stream, by which the feed goes on. A batch of reports has one.
	// Time is when the server stored it.
	Seq      uint64        `json:"seq"`
	ID       string        `json:"id"`
	Time     time.Time     `json:"time"`
	Node     string        `json:"node"`
	Kind     string        `json:"kind"`
	Outcome  model.Outcome `json:"outcome"`
	Cause    model.Cause   `json:"cause,omitempty"`
	Manifest string        `json:"manifest,omitempty"`
	Resource string        `json:"resource,omitempty"`
	RunID    string        `json:"run_id,omitempty"`
	// CorrelationID is that of the request which it answers.
	CorrelationID string `json:"correlation_id,omitempty"`
	// By is who sent that request, as the sender said and the node repeats.
	By string `json:"by,omitempty"`
	// Text is what happened, in a line that is cut where it is long.
	Text string `json:"text"`
}

// EventQuery selects events. What is empty selects all.
type EventQuery struct {
	Node, Kind, Manifest, RunID string
	Outcome                     model.Outcome
	Cause                       model.Cause
	Search                      string
	// Before selects those of lower Seq, 0 all; After, for Follow alone, those of higher Seq.
	Before, After uint64
	// Limit is the most events, 0 for 100.
	Limit int
}

// EventPage is a page of events, the newest first.
type EventPage struct {
	Progress Progress `json:"progress"`
	Events   []Event  `json:"events"`
	// More is that there are older ones which are kept.
	More bool `json:"more"`
}

// RequestRow is a request that nodes were sent, by what they answered.
type RequestRow struct {
	// ID is the correlation id of the answers.
	ID string `json:"id"`
	// By is who sent it and Nodes to how many, as the sender said and most of the nodes that answered
	// repeat; empty and zero where that is not known.
	By       string    `json:"by,omitempty"`
	Nodes    int       `json:"nodes,omitempty"`
	Resource string    `json:"resource"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Answers  int       `json:"answers"`
	Failed   int       `json:"failed"`
	Changed  int       `json:"changed"`
}
