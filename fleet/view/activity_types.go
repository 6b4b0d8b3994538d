package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

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
	// Since and Until select the events that the server stored at or after Since and before Until; zero means no limit.
	Since, Until time.Time
	// Limit is the most events, 0 for 100.
	Limit int
}

// RunRow is a run in a list. Outcome is empty while only some of its reports are known.
type RunRow struct {
	RunID    string      `json:"run_id"`
	Node     string      `json:"node"`
	Manifest string      `json:"manifest"`
	Revision uint64      `json:"revision"`
	Cause    model.Cause `json:"cause"`
	// Retry reports whether it tries again what failed before.
	Retry    bool          `json:"retry,omitempty"`
	Outcome  model.Outcome `json:"outcome,omitempty"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration"`
	Counts   model.Counts  `json:"counts"`
	Error    string        `json:"error,omitempty"`
}

// RequestRow is a request that nodes were sent, by what they answered.
type RequestRow struct {
	// ID is the correlation id of the answers.
	ID string `json:"id"`
	// By is who sent it and Nodes to how many, as the sender said and most of the nodes that answered
	// repeat; empty and zero where that is not known.
	By    string `json:"by,omitempty"`
	Nodes int    `json:"nodes,omitempty"`
	// To are the targets that it was sent to, or On is the target expression, as the sender said; both are
	// empty where that is not known.
	To       string    `json:"to,omitempty"`
	On       string    `json:"on,omitempty"`
	Resource string    `json:"resource"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Answers  int       `json:"answers"`
	Failed   int       `json:"failed"`
	Changed  int       `json:"changed"`
}

// IsRun reports whether it is a run request: runs have ids of their own, which other requests may have, too.
func (r RequestRow) IsRun() bool { return r.Resource == ofRun }

// Point counts what was reported within one interval of time, by the clock of the server: runs,
// of these such as changed something or failed, and repairs of drift.
type Point struct {
	At       time.Time `json:"at"`
	Runs     int       `json:"runs"`
	Changed  int       `json:"changed"`
	Failed   int       `json:"failed"`
	Repaired int       `json:"repaired"`
}
