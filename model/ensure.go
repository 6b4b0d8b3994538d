package model

import (
	"encoding/json"
	"time"
)

// EnsureRequest asks for one resource to be in a state
// (io.choria.ccm.v1.resource.ensure.request). ID, Expires and Noop are used
// over NATS only.
type EnsureRequest struct {
	Protocol   string          `json:"protocol"`
	Type       string          `json:"type" jsonschema_description:"Resource type"`
	Properties json.RawMessage `json:"properties" jsonschema_description:"The resource's properties, name included"`
	ID         string          `json:"id,omitempty" jsonschema_description:"Identifies the request; a repeated id is not executed again"`
	Expires    time.Time       `json:"expires,omitzero" jsonschema_description:"Time after which the request is not executed"`
	Noop       bool            `json:"noop,omitempty"`
	// Check marks a command that only reads: it runs, and its transaction is not changed. Nodes do not verify it.
	Check bool `json:"check,omitempty" jsonschema_description:"The command only reads: it runs and does not count as a change; for the type exec"`
}

// MaxRequestID is how long the id of a request may be, in bytes.
const MaxRequestID = 128

// IsRequestID reports whether a text may be the id of a request, which is shown in
// logs, reports and tables. It may be empty: a request without an id gets one.
func IsRequestID(s string) bool { return len(s) <= MaxRequestID && IsLine(s) }

// EnsurePhase is the progress of an ensure request.
type EnsurePhase string

// The phases. Done, failed, expired and cancelled are final. An expired or cancelled request was not
// executed.
const (
	EnsureAcknowledged EnsurePhase = "acknowledged"
	EnsureRunning      EnsurePhase = "running"
	EnsureDone         EnsurePhase = "done"
	EnsureFailed       EnsurePhase = "failed"
	EnsureExpired      EnsurePhase = "expired"
	EnsureCancelled    EnsurePhase = "cancelled"
)

// Final reports whether no further response follows.
func (p EnsurePhase) Final() bool {
	return p == EnsureDone || p == EnsureFailed || p == EnsureExpired || p == EnsureCancelled
}

// MaxTarget limits the bytes of the target of a request, because each node repeats it.
const MaxTarget = 1000

// Sender names the sender of a request and its targets. The sender declares it without verification, and
// nodes repeat it.
type Sender struct {
	By string `json:"by,omitempty" jsonschema_description:"Sender; not verified"`
	// Nodes is the number of nodes over all messages, zero if it is unknown.
	Nodes int `json:"nodes,omitempty" jsonschema_description:"Number of nodes that it was sent to"`
	// To lists the targets as families, separated by spaces. On is the expression that selected the nodes.
	// Both are empty if they are unknown or too long.
	To string `json:"to,omitempty" jsonschema_description:"Targets: node.<node> and group.<group>, separated by spaces"`
	On string `json:"on,omitempty" jsonschema_description:"The target expression that selected the nodes"`
}

// EnsureResponse answers an ensure request with either the transaction or an
// error (io.choria.ccm.v1.resource.ensure.response). ID, Phase and Node are
// used over NATS only. With Runs it answers a run request (io.muster.v1.run.response).
type EnsureResponse struct {
	Protocol string       `json:"protocol"`
	State    *Transaction `json:"state,omitempty"`
	Plan     *Plan        `json:"plan,omitempty" jsonschema_description:"For a preview: the planned changes"`
	Error    string       `json:"error,omitempty"`
	ID       string       `json:"id,omitempty"`
	Phase    EnsurePhase  `json:"phase,omitempty" jsonschema:"enum=acknowledged,enum=running,enum=done,enum=failed,enum=expired,enum=cancelled"`
	Node     string       `json:"node,omitempty"`
	// Unknown means that a cancel names an unknown request.
	Unknown bool `json:"unknown,omitempty" jsonschema_description:"For a cancel: the node does not know the request; it will not execute the request if it arrives within a day"`
	// Sender is the sender of the request, nil if it is unknown.
	Sender *Sender `json:"sender,omitempty" jsonschema_description:"Sender of the request; not verified"`
	// Runs are the results of a run request, one for each manifest, by key.
	Runs []RequestedRun `json:"runs,omitempty" jsonschema_description:"For a run request: the result of each manifest"`
}
