package view

import (
	"time"

	"github.com/musterfleet/muster/fleet"

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
	// BlindSince is the time since which no data about nodes arrives, zero if data arrives. States of nodes are the
	// last known states then.
	BlindSince time.Time `json:"blind_since,omitzero"`
	// Problems are why it may not be up to date: NATS cannot be reached since.
	Problems []string `json:"problems"`
	// Notice describes an event after which the data is current but some is lost, such as a restored stream, with its time.
	Notice string `json:"notice,omitempty"`
	// Incomplete is what the history lacks, although all was read that is: what is before the newest 2 GiB, reports of nodes
	// of which the stream keeps only the newest, and messages that cannot be read, and how many.
	Incomplete []string `json:"incomplete,omitempty"`
}

// Overview is the fleet as a whole.
type Overview struct {
	Progress Progress `json:"progress"`
	Summary
	// History has what happened, by time, oldest first.
	History []Point `json:"over_time"`
	// Top are the resources that fail, drift and flap most.
	Top Top `json:"top"`
	// Webhooks are those that are not delivered, are late or lack reports, with the reason, by name.
	Webhooks []WebhookProblem `json:"webhooks"`
}

// NodePage is a page of nodes.
type NodePage struct {
	Progress Progress  `json:"progress"`
	Rows     []NodeRow `json:"rows"`
	// Known is how many nodes there are, Matching how many the query selects.
	Known    int `json:"known"`
	Matching int `json:"matching"`
	// States counts what the query selects but for its state.
	States []State `json:"states"`
	// Undecided are nodes of which nobody knows whether they match, by name.
	Undecided []fleet.Undecided `json:"undecided"`
	// Warnings are the warnings of fleet.Selection.
	Warnings []string `json:"warnings"`
}

// NodeDetail is what is known of one node.
type NodeDetail struct {
	Progress Progress `json:"progress"`
	Node
	// Runs are its newest, the newest first, Events what it reported last.
	Runs   []RunRow `json:"runs"`
	Events []Event  `json:"events"`
}

// ManifestRow is a manifest in a list, whatever its targets.
type ManifestRow struct {
	Manifest
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

// ManifestDetail is what is known of one manifest.
type ManifestDetail struct {
	Progress Progress `json:"progress"`
	ManifestRow
	// Nodes are a page of those that are selected, those that need attention first, Matching
	// how many are.
	Nodes    []Assignment `json:"nodes"`
	Matching int          `json:"matching"`
	Failing  []Failure    `json:"failing"`
	Top      Top          `json:"top"`
	Runs     []RunRow     `json:"runs"`
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
	// Request is the id of the request that changed the resource, empty for a run. Run is nil if it is set.
	Request string `json:"request,omitempty"`
}

// EventPage is a page of events, the newest first.
type EventPage struct {
	Progress Progress `json:"progress"`
	Events   []Event  `json:"events"`
	// More is that there are older ones which are kept.
	More bool `json:"more"`
}

// RequestDetail is a request with the nodes that did not answer it.
type RequestDetail struct {
	Progress Progress `json:"progress"`
	RequestRow
	// Missing are the nodes that did not answer, by name: those that its targets are now. Others answered though they are
	// none of these. Both are empty where Unknown is why nobody can tell.
	Missing []string `json:"missing"`
	Others  []string `json:"others"`
	Unknown string   `json:"unknown,omitempty"`
	// SameID is that there are a run and another request with the id, of which this is one.
	SameID bool `json:"same_id,omitempty"`
	// Answered are the known nodes that answered, by name.
	Answered []string `json:"-"`
}
