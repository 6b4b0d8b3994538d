package model

import "time"

// NodeEvent is what a report of kind node is about.
type NodeEvent string

// The events of a node.
const (
	NodeStarted NodeEvent = "started"
	NodeStopped NodeEvent = "stopped"
	NodeRefused NodeEvent = "refused"
	NodeDropped NodeEvent = "dropped"
	// NodeUnassigned is that a manifest is not assigned to the node any more.
	NodeUnassigned NodeEvent = "unassigned"
	// NodeDuplicate is that another agent runs as the same node.
	NodeDuplicate NodeEvent = "duplicate"
)

// NodeState is what a node says of itself (io.muster.v1.node), in the bucket
// and as a report.
type NodeState struct {
	Protocol  string                   `json:"protocol"`
	Node      string                   `json:"node"`
	Event     NodeEvent                `json:"event,omitempty" jsonschema:"enum=started,enum=stopped,enum=refused,enum=dropped,enum=silent,enum=unassigned,enum=duplicate"`
	Version   string                   `json:"version"`
	Started   time.Time                `json:"started"`
	At        time.Time                `json:"at"`
	Groups    []string                 `json:"groups"`
	Labels    map[string]string        `json:"labels,omitempty"`
	Manifests map[string]ManifestState `json:"manifests,omitempty" jsonschema_description:"By key in the bucket"`
	Health    HealthCounts             `json:"health,omitzero" jsonschema_description:"Current health checks, by status"`
	Outbox    int                      `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches   int                      `json:"watches"`
	Message   string                   `json:"message,omitempty" jsonschema_description:"What the event is about"`
	// SilentAfter is after how long without another state the node counts as
	// silent; zero is never. Only the state in the bucket has it.
	SilentAfter Duration `json:"silent_after,omitempty" jsonschema_description:"After how long without another state the node counts as silent; only in the bucket"`
	// Dropped is the number of reports that an event dropped is about. DroppedFrom and DroppedTo
	// are the first and the last seq of them, DroppedRanges all, in order.
	Dropped       int        `json:"dropped,omitempty" jsonschema_description:"Number of dropped reports"`
	DroppedFrom   uint64     `json:"dropped_from,omitempty"`
	DroppedTo     uint64     `json:"dropped_to,omitempty"`
	DroppedRanges []SeqRange `json:"dropped_ranges,omitempty" jsonschema_description:"The seqs of all of them, in order"`
}

// Node is a node as the fleet knows it.
type Node struct {
	NodeState
	// Silent reports whether it has said nothing for longer than its SilentAfter; the rest
	// is what it said last. That is known for 7 days, or for as long as SilentAfter
	// where that is longer.
	Silent bool `json:"silent"`
	// Heard is when it last said something.
	Heard time.Time `json:"heard,omitzero"`
}

// Stopped reports whether the node's agent was ended in good order, and has not been
// heard of since.
func (n Node) Stopped() bool { return n.Event == NodeStopped }

// SeqRange is a range of seq, both ends within.
type SeqRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// ManifestState is how a node stands with one manifest.
type ManifestState struct {
	Revision uint64    `json:"revision" jsonschema_description:"Revision in force"`
	Digest   string    `json:"digest"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Counts   Counts    `json:"counts"`
	// Error is the first error of the last run; the report of the run has them all.
	Error string `json:"error,omitempty" jsonschema_description:"First error of the last run"`
	// Seen is the newest revision the node knows of; it differs from Revision when that one was refused.
	Seen uint64 `json:"seen,omitempty" jsonschema_description:"Newest revision seen, where it is not in force"`
	// Late is why Seen is not in force.
	Late string `json:"late,omitempty" jsonschema_description:"Why the newest revision is not in force"`
}

// Facts is what is known of a node, as nested maps, lists and scalars in the
// form of decoded JSON.
type Facts map[string]any
