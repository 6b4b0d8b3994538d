package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Event is a report in the feed.
type Event struct {
	// Seq is its sequence number in the stream, where the feed resumes. The reports of a batch share one.
	// Time is the time when the server stored it.
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
	// CorrelationID is the id of the request that it answers.
	CorrelationID string `json:"correlation_id,omitempty"`
	// By is the unverified name of the request's sender, as the node repeats it.
	By string `json:"by,omitempty"`
	// Text describes the event in one line. A long line is cut.
	Text string `json:"text"`
}

// EventQuery selects events. Empty fields select all.
type EventQuery struct {
	Node, Kind, Manifest, RunID string
	Outcome                     model.Outcome
	Cause                       model.Cause
	Search                      string
	// Before selects events of lower Seq, 0 all. After selects events of higher Seq, for Follow only.
	Before, After uint64
	// Since and Until select the events that the server stored at or after Since and before Until; zero means no limit.
	Since, Until time.Time
	// Limit is the maximum number of events, 0 for 100.
	Limit int
}

// RunRow is a run in a list. Outcome is empty until its summary is known.
type RunRow struct {
	RunID    string      `json:"run_id"`
	Node     string      `json:"node"`
	Manifest string      `json:"manifest"`
	Revision uint64      `json:"revision"`
	Cause    model.Cause `json:"cause"`
	// Retry means that it repeats a failed run.
	Retry    bool          `json:"retry,omitempty"`
	Outcome  model.Outcome `json:"outcome,omitempty"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration"`
	Counts   model.Counts  `json:"counts"`
	Error    string        `json:"error,omitempty"`
}

// RequestRow is a request and the answers of nodes.
type RequestRow struct {
	// ID is the correlation id of the answers.
	ID string `json:"id"`
	// By is the sender and Nodes the number of nodes, unverified, as most answers repeat them. They are empty
	// and zero if they are unknown.
	By    string `json:"by,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
	// To are the unverified targets, On is the unverified target expression. Both are empty if they are
	// unknown.
	To       string    `json:"to,omitempty"`
	On       string    `json:"on,omitempty"`
	Resource string    `json:"resource"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Answers  int       `json:"answers"`
	Failed   int       `json:"failed"`
	Changed  int       `json:"changed"`
}

// IsRun marks a run request. The id of a run request may equal the id of another request.
func (r RequestRow) IsRun() bool { return r.Resource == ofRun }

// Point counts the reports of one interval by the clock of the server: runs, changed and failed runs, and
// repairs of drift.
type Point struct {
	At       time.Time `json:"at"`
	Runs     int       `json:"runs"`
	Changed  int       `json:"changed"`
	Failed   int       `json:"failed"`
	Repaired int       `json:"repaired"`
}
