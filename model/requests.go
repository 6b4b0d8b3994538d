package model

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Check      bool            `json:"check,omitempty" jsonschema_description:"The command only reads: it runs and does not count as a change; for the type exec"`
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
	By    string `json:"by,omitempty" jsonschema_description:"Sender; not verified"`
	Nodes int    `json:"nodes,omitempty" jsonschema_description:"Number of nodes that it was sent to"`
	// To lists the targets as families, separated by spaces. On is the expression that selected the nodes.
	To string `json:"to,omitempty" jsonschema_description:"Targets: node.<node> and group.<group>, separated by spaces"`
	On string `json:"on,omitempty" jsonschema_description:"The target expression that selected the nodes"`
}

// EnsureResponse answers an ensure request with either the transaction or an
// error (io.choria.ccm.v1.resource.ensure.response). ID, Phase and Node are
// used over NATS only. With Runs it answers a run request (io.muster.v1.run.response).
type EnsureResponse struct {
	Protocol string         `json:"protocol"`
	State    *Transaction   `json:"state,omitempty"`
	Plan     *Plan          `json:"plan,omitempty" jsonschema_description:"For a preview: the planned changes"`
	Error    string         `json:"error,omitempty"`
	ID       string         `json:"id,omitempty"`
	Phase    EnsurePhase    `json:"phase,omitempty" jsonschema:"enum=acknowledged,enum=running,enum=done,enum=failed,enum=expired,enum=cancelled"`
	Node     string         `json:"node,omitempty"`
	Unknown  bool           `json:"unknown,omitempty" jsonschema_description:"For a cancel: the node does not know the request; it will not execute the request if it arrives within a day"`
	Sender   *Sender        `json:"sender,omitempty" jsonschema_description:"Sender of the request; not verified"`
	Runs     []RequestedRun `json:"runs,omitempty" jsonschema_description:"For a run request: the result of each manifest"`
}

// RunRequest asks nodes to run their assignments now (io.muster.v1.run.request).
type RunRequest struct {
	Protocol  string    `json:"protocol"`
	Manifests []string  `json:"manifests,omitempty" jsonschema_description:"Names of the manifests; absent for all"`
	ID        string    `json:"id,omitempty" jsonschema_description:"Identifies the request; a repeated id has no effect"`
	Expires   time.Time `json:"expires" jsonschema_description:"Time after which the request has no effect"`
	Noop      bool      `json:"noop,omitempty" jsonschema_description:"Show what would change, and change nothing"`
}

// Limits of a run request: its size in bytes and its number of manifests.
const (
	MaxRunRequest    = 16 << 10
	maxRunsRequested = 100
)

// ErrInvalidRunRequest means that a run request is not valid. It is permanent.
var ErrInvalidRunRequest = errors.New("invalid run request")

// DecodeRunRequest decodes a run request strictly. The error wraps ErrInvalidRunRequest. It also returns the
// decoded part of an invalid request.
func DecodeRunRequest(data []byte) (RunRequest, error) {
	r, err := decodeDocument[RunRequest](data, MaxRunRequest, ErrInvalidRunRequest)
	if !IsRequestID(r.ID) {
		r.ID = ""
	}

	return r, err
}

// Check reports whether a run request is valid; the error wraps ErrInvalidRunRequest.
func (r RunRequest) Check() error {
	var problem string
	switch {
	case r.Protocol != ProtocolRunRequest:
		problem = "its protocol is not " + ProtocolRunRequest
	case !IsRequestID(r.ID):
		problem = fmt.Sprintf("its id must be one line of at most %d bytes", MaxRequestID)
	case r.Expires.IsZero():
		problem = "it has no time after which it expires"
	case len(r.Manifests) > maxRunsRequested:
		problem = fmt.Sprintf("it names %d manifests, at most %d are taken", len(r.Manifests), maxRunsRequested)
	}
	for _, name := range r.Manifests {
		if problem == "" && !IsToken(name) {
			problem = "a manifest's name has letters, digits, - and _ only"
		}
	}

	if problem == "" {
		return nil
	}

	return fmt.Errorf("%w: %s", ErrInvalidRunRequest, problem)
}

// RequestedRun is the result of one manifest of a run request.
type RequestedRun struct {
	Manifest string  `json:"manifest" jsonschema_description:"Key of the manifest"`
	Revision uint64  `json:"revision,omitempty"`
	RunID    string  `json:"run_id,omitempty" jsonschema_description:"Id of the run; absent if there was none"`
	Outcome  Outcome `json:"outcome"`
	Noop     bool    `json:"noop,omitempty"`
	Counts   Counts  `json:"counts"`
	Error    string  `json:"error,omitempty" jsonschema_description:"First error of the run, or the reason why there was no run"`
}

// OutcomeOf returns the outcome of a run request: failed if a manifest is not OK, else changed, noop or
// stable.
func OutcomeOf(runs []RequestedRun) Outcome {
	out := OutcomeStable
	for _, r := range runs {
		switch {
		case !r.OK():
			return OutcomeFailed
		case r.Counts.Made() > 0:
			out = OutcomeChanged
		case r.Counts.Noop > 0 && out == OutcomeStable:
			out = OutcomeNoop
		}
	}

	return out
}

// OK reports whether each resource of the manifest is in its desired state, or would be.
func (r RequestedRun) OK() bool {
	return !r.Outcome.IsFailure() && r.Error == "" && r.Counts.Failed+r.Counts.Unmet+r.Counts.NotRun == 0
}

// CancelRequest cancels an earlier ensure or run request (io.muster.v1.cancel.request). It is sent like
// ensure requests.
type CancelRequest struct {
	Protocol string    `json:"protocol"`
	Request  string    `json:"request" jsonschema_description:"Id of the request to cancel"`
	Kill     bool      `json:"kill,omitempty" jsonschema_description:"End the request if it is running; runs are not ended"`
	By       string    `json:"by,omitempty" jsonschema_description:"Name of the canceller; not verified"`
	Expires  time.Time `json:"expires" jsonschema_description:"Time after which the cancel has no effect"`
}

// MaxCancelRequest is the size of a cancel, in bytes, without signatures.
const MaxCancelRequest = 4 << 10

// ErrInvalidCancel means that a cancel is not valid. It is permanent.
var ErrInvalidCancel = errors.New("invalid cancel")

// IsCancelRequest reports whether the protocol of a document is cancel. The document may be invalid.
func IsCancelRequest(data []byte) bool {
	var named struct{ Protocol string }

	return len(data) <= MaxCancelRequest && json.Unmarshal(data, &named) == nil && named.Protocol == ProtocolCancelRequest
}

// DecodeCancelRequest decodes a cancel strictly. The error wraps ErrInvalidCancel. It also returns the
// decoded part of an invalid cancel.
func DecodeCancelRequest(data []byte) (CancelRequest, error) {
	c, err := decodeDocument[CancelRequest](data, MaxCancelRequest, ErrInvalidCancel)
	if !IsRequestID(c.Request) {
		c.Request = ""
	}

	return c, err
}

// Check reports whether a cancel is valid; the error wraps ErrInvalidCancel.
func (c CancelRequest) Check() error {
	switch {
	case c.Protocol != ProtocolCancelRequest:
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidCancel, ProtocolCancelRequest)
	case c.Request == "" || !IsRequestID(c.Request):
		return fmt.Errorf("%w: it must name the id of a request, one line of at most %d bytes", ErrInvalidCancel, MaxRequestID)
	case !isLine(c.By, maxControlBy):
		return fmt.Errorf("%w: by must be one line of at most %d bytes", ErrInvalidCancel, maxControlBy)
	case c.Expires.IsZero():
		return fmt.Errorf("%w: it has no time after which it expires", ErrInvalidCancel)
	default:
		return nil
	}
}

// String describes it for people: cancelled by ann@desk.
func (c CancelRequest) String() string {
	if c.By == "" {
		return "cancelled"
	}

	return "cancelled by " + c.By
}

// MaxPreview limits the validity of a preview. Nodes remember request ids as long.
const MaxPreview = time.Hour

// PreviewRequest asks a node for the plan of an assignment without assigning it
// (io.muster.v1.preview.request).
type PreviewRequest struct {
	Protocol string    `json:"protocol"`
	ID       string    `json:"id"`
	Expires  time.Time `json:"expires"`
	// Name is the name of the assignment that the value would replace.
	Name string `json:"name"`
	// Value is a manifest or an assignment document.
	Value string `json:"value"`
}

// Plan contains the changes that a run of an assignment would make on a node.
type Plan struct {
	Counts       Counts        `json:"counts"`
	Inactive     string        `json:"inactive,omitempty" jsonschema_description:"Reason why the manifest would not run; absent if it would"`
	Transactions []Transaction `json:"transactions,omitempty" jsonschema_description:"Results of the resources that would change, fail or not run, in order"`
	Errors       []string      `json:"errors,omitempty" jsonschema_description:"Errors that belong to no single resource, including the reason for a rejection"`
	Cut          bool          `json:"cut,omitempty" jsonschema_description:"The plan is incomplete because it is long"`
	Digest       string        `json:"digest" jsonschema_description:"sha256-… of the complete plan"`
}

// OK reports whether every resource would be in its desired state after the run.
func (p *Plan) OK() bool {
	return len(p.Errors) == 0 && p.Counts.Failed == 0 && p.Counts.Unmet == 0 && p.Counts.NotRun == 0
}
