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

// EnsurePhase is how far an ensure request has come.
type EnsurePhase string

// The phases; done, failed, expired and cancelled are final. Of an expired or cancelled one
// nothing was executed.
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

// MaxTarget is how many bytes the target of a request has that is sent and read: every node repeats it.
const MaxTarget = 1000

// Sender is who sent a request, and to how many nodes, as the sender said: nobody verifies that, and a
// node repeats it.
type Sender struct {
	By string `json:"by,omitempty" jsonschema_description:"Whoever sent it; nobody verifies that"`
	// Nodes are those of all its messages, zero where that is not known.
	Nodes int `json:"nodes,omitempty" jsonschema_description:"How many nodes it was sent to"`
	// To are the targets, nodes and groups as families separated by spaces, or On is the expression that
	// selected the nodes; both are empty where that is not known, or long.
	To string `json:"to,omitempty" jsonschema_description:"Whom it was sent to: node.<node> and group.<group>, separated by spaces"`
	On string `json:"on,omitempty" jsonschema_description:"The target expression that selected the nodes"`
}

// EnsureResponse answers an ensure request with either the transaction or an
// error (io.choria.ccm.v1.resource.ensure.response). ID, Phase and Node are
// used over NATS only. With Runs it answers a run request (io.muster.v1.run.response).
type EnsureResponse struct {
	Protocol string       `json:"protocol"`
	State    *Transaction `json:"state,omitempty"`
	Plan     *Plan        `json:"plan,omitempty" jsonschema_description:"Of a preview: what would change"`
	Error    string       `json:"error,omitempty"`
	ID       string       `json:"id,omitempty"`
	Phase    EnsurePhase  `json:"phase,omitempty" jsonschema:"enum=acknowledged,enum=running,enum=done,enum=failed,enum=expired,enum=cancelled"`
	Node     string       `json:"node,omitempty"`
	// Unknown is that a cancel names a request that the node does not know.
	Unknown bool `json:"unknown,omitempty" jsonschema_description:"Of a cancel: the node does not know the request, and does not execute it should it come within a day"`
	// Sender is who sent the request, nil where that is not known.
	Sender *Sender `json:"sender,omitempty" jsonschema_description:"Who sent the request, as the sender said"`
	// Runs are what came of the manifests that a run request is about, by key.
	Runs []RequestedRun `json:"runs,omitempty" jsonschema_description:"Of a run request: what came of each manifest"`
}
