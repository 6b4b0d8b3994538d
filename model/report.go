package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Kinds returns the kinds of reports.
func Kinds() []string {
	return []string{KindRun, KindTransaction, KindHealth, KindEnsure, KindNode}
}

// ReportOutcomes returns the outcomes of reports of all kinds: of resources, runs and requests, of health checks, and the
// events of nodes.
func ReportOutcomes() []string {
	var out []string
	for _, o := range []any{
		OutcomeStable, OutcomeChanged, OutcomeRefreshed, OutcomeFailed, OutcomeSkipped, OutcomeNoop, OutcomeUnmet, Rejected, OutcomeRefused, OutcomeNotRun,
		HealthOK, HealthWarning, HealthCritical, HealthUnknown,
		NodeStarted, NodeStopped, NodeDropped, NodeUnassigned, NodeDuplicate, NodeFlapping,
	} {
		out = append(out, fmt.Sprint(o))
	}

	return out
}

// ReportCauses returns the causes of reported runs.
func ReportCauses() []string {
	var out []string
	for _, c := range []Cause{CauseManifest, CauseSchedule, CauseDrift, CauseHealth, CauseEnsure, CauseRequest} {
		out = append(out, string(c))
	}

	return out
}

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

// ErrNotProvisioned is a bucket or stream that is missing, or not configured as muster needs it. An operator creates it
// with `muster fleet init`.
var ErrNotProvisioned = errors.New("NATS is not provisioned for muster")

// ControlRevision is the newest revision of a control key, which may be a deletion.
type ControlRevision struct {
	Entry
	// Complete reports whether the reader has every revision that was stored at its start. For an empty
	// bucket, the first value is complete and its Entry has no key.
	Complete bool
}

// NodeChange is a node whose state was stored, or removed if Gone is set.
type NodeChange struct {
	Node
	Gone bool
}

// LastStored is the time at which the leader of a stream stored its last message, by its clock.
type LastStored struct {
	// Stream and Server are the names of the stream and of the server that leads it.
	Stream, Server string
	// At is the time of the last message, or of the creation of an empty stream. Now is the time of the answer.
	At, Now time.Time
}

// StoredReports is one message of the stream of reports: a report, or a batch of reports of one run.
type StoredReports struct {
	Sequence uint64
	// Stored is the time at which the server stored the message. The times in reports come from nodes.
	Stored time.Time
	// Size is the size of the message in bytes.
	Size    int
	Reports []Report
	// Invalid is set if some of the reports cannot be read.
	Invalid error
}

// ReportRange selects messages of the stream of reports. Zero fields select everything.
type ReportRange struct {
	Node, Kind, Outcome string
	// Nodes are several nodes. It is ignored if Node is set.
	Nodes []string
	// After skips messages up to this sequence, Since skips messages that were stored earlier.
	After uint64
	Since time.Time
	// Newest selects the last message of each node, kind and outcome.
	Newest bool
	// Follow continues with new messages until the context ends.
	Follow bool
}

// ReportBounds describes which reports the stream retains.
type ReportBounds struct {
	// Oldest is the time of the oldest stored report, zero if there is none. Dropped is set if the stream has dropped
	// older reports.
	Oldest  time.Time
	Dropped bool
	// PerSubject is the maximum number of messages per node, kind and outcome, 0 for no limit.
	PerSubject int
}

// ReportSubscription is a durable reader of new reports. It continues where it stopped. Readers with the same name share
// its messages, one at a time and in order.
type ReportSubscription struct {
	// Name is one word.
	Name string
	// Kinds and Outcomes select reports; empty selects all. A batch is delivered with all its outcomes.
	Kinds, Outcomes []string
	// All starts a new subscription at the oldest report, After behind a sequence.
	All   bool
	After uint64
}

// ReportHold is the time after which an unfinished delivery goes to another reader. Hold restarts it.
const ReportHold = 30 * time.Second

// ErrOtherAccount is a subscription in an account that is joined with the fleet's account, where durable consumers do not
// work.
var ErrOtherAccount = errors.New("a durable consumer needs a connection to the account of the fleet itself")

// ReportDelivery is a message of a subscription. It is delivered again unless it is done within ReportHold.
type ReportDelivery struct {
	StoredReports
	Receipt
}

// Receipt acknowledges a delivery.
type Receipt interface {
	// Done ends the delivery. After an error the message may be delivered again.
	Done(ctx context.Context) error
	// Again asks for another delivery at once, to any reader.
	Again(ctx context.Context) error
	// Hold restarts ReportHold.
	Hold() error
}

// The protocol ids of the documents (spec/formats.md, "Documents on the wire").
const (
	ProtocolTransaction    = "io.choria.ccm.v1.transaction.event"
	ProtocolEnsureRequest  = "io.choria.ccm.v1.resource.ensure.request"
	ProtocolEnsureResponse = "io.choria.ccm.v1.resource.ensure.response"
	ProtocolAssignment     = "io.muster.v1.assignment"
	ProtocolRun            = "io.muster.v1.run"
	ProtocolNode           = "io.muster.v1.node"
	ProtocolAgent          = "io.muster.v1.agent"
	ProtocolHealth         = "io.muster.v1.health"
	ProtocolRegistration   = "io.muster.v1.registration"
	ProtocolStatement      = "io.muster.v1.statement"
	ProtocolPause          = "io.muster.v1.pause"
	ProtocolLabels         = "io.muster.v1.labels"
	ProtocolGroups         = "io.muster.v1.groups"
	ProtocolRunRequest     = "io.muster.v1.run.request"
	ProtocolRunResponse    = "io.muster.v1.run.response"
	ProtocolCancelRequest  = "io.muster.v1.cancel.request"

	ProtocolPreviewRequest  = "io.muster.v1.preview.request"
	ProtocolPreviewResponse = "io.muster.v1.preview.response"
)

// StateProtocol is the protocol id of the state of a resource type.
func StateProtocol(typ string) string { return "io.choria.ccm.v1.resource." + typ + ".state" }
