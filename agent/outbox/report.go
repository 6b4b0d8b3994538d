package outbox

import (
	"encoding/json"
	"time"
)

// The kinds of reports; part of the subject.
const (
	KindRun         = "run"
	KindTransaction = "transaction"
	KindHealth      = "health"
	KindEnsure      = "ensure"
	KindNode        = "node"
)

// Report is one document on its way to the stream, with what its envelope says.
type Report struct {
	// Seq counts the reports of a node; Append gives it.
	Seq uint64 `json:"seq"`
	// ID is a KSUID, the same at each delivery.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`
	// Kind and Outcome end the subject. Of a report of kind node the outcome is the event.
	Kind    string `json:"kind"`
	Outcome string `json:"outcome"`
	// Protocol is the document's.
	Protocol      string          `json:"protocol"`
	RunID         string          `json:"run_id,omitempty"`
	Manifest      string          `json:"manifest,omitempty"`
	Revision      uint64          `json:"revision,omitempty"`
	Digest        string          `json:"digest,omitempty"`
	Cause         string          `json:"cause,omitempty"`
	CorrelationID string          `json:"correlation_id,omitempty"`
	Document      json.RawMessage `json:"document"`
}

// flags gives what the record says of a report, so that it need not be decoded
// to decide what is dropped first.
func (r *Report) flags() uint8 {
	if r.Kind == KindRun && r.Outcome == "stable" {
		return flagStable
	}

	return 0
}
