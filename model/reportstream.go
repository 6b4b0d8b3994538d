package model

import (
	"context"
	"errors"
	"time"
)

// ErrNotProvisioned is a bucket or stream that is missing, or not configured as muster needs it. An operator creates it
// with `muster fleet init`.
var ErrNotProvisioned = errors.New("NATS is not provisioned for muster")

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
	Node, Kind string
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
