package model

import (
	"encoding/json"
	"time"
)

// TimeFormat is the format of times for users, in their time zone.
const TimeFormat = "2006-01-02 15:04:05 MST"

// The kinds of report; part of its subject.
const (
	KindRun         = "run"
	KindTransaction = "transaction"
	KindHealth      = "health"
	KindEnsure      = "ensure"
	KindNode        = "node"
)

// Report is a document of a node with its envelope. Delivery is at least once: readers deduplicate by (Node,
// ID) and order the reports of a node by Seq.
type Report struct {
	// Node, Kind and Outcome come from the subject, which the server checks. The outcome of a report of kind
	// node is its event.
	Node    string    `json:"node"`
	Kind    string    `json:"kind"`
	Outcome Outcome   `json:"outcome"`
	Time    time.Time `json:"time"`
	// ID is a KSUID, the same at each delivery. KSUIDs sort by second. Seq counts the reports of a node.
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
	// Batch is set for a waiting report that is sent in a batch with others of its run.
	Batch bool `json:"batch,omitempty"`
	// Data is the document.
	Data json.RawMessage `json:"data"`
}
