package model

import (
	"encoding/json"
	"time"
)

// TimeFormat is how a time is shown to people, who get it in their own zone.
const TimeFormat = "2006-01-02 15:04:05 MST"

// The kinds of report; part of its subject.
const (
	KindRun         = "run"
	KindTransaction = "transaction"
	KindHealth      = "health"
	KindEnsure      = "ensure"
	KindNode        = "node"
)

// Report is a document of a node with its envelope. Who
// reads them is idempotent on (Node, ID) and orders those of a node by Seq:
// delivery is at least once.
type Report struct {
	// Node, Kind and Outcome are those of the subject, which the server guards. Of
	// a report of kind node the outcome is the event.
	Node    string    `json:"node"`
	Kind    string    `json:"kind"`
	Outcome Outcome   `json:"outcome"`
	Time    time.Time `json:"time"`
	// ID is a KSUID, which sorts by its second, the same at each delivery. Seq
	// counts the reports of a node.
	ID  string `json:"id"`
	Seq uint64 `json:"seq,omitempty"`
	// Type is the protocol id of Data, Schema the URL of its JSON Schema.
	Type          string `json:"type"`
	Schema        string `json:"-"`
	RunID         string `json:"run_id,omitempty"`
	Manifest      string `json:"manifest,omitempty"`
	Revision      uint64 `json:"revision,omitempty"`
	Digest        string `json:"digest,omitempty"`
	Cause         Cause  `json:"cause,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
	// Batch is set while a report waits that travels with its neighbours, as one of
	// many of a run.
	Batch bool `json:"batch,omitempty"`
	// Data is the document.
	Data json.RawMessage `json:"data"`
}
