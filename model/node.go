package model

import (
	"strings"
	"time"
)

// NodeEvent is what a report of kind node is about.
type NodeEvent string

// The events of a node.
const (
	NodeStarted NodeEvent = "started"
	NodeStopped NodeEvent = "stopped"
	NodeRefused NodeEvent = "refused"
	NodeDropped NodeEvent = "dropped"
	// NodeUnassigned is a manifest that is no longer assigned to the node.
	NodeUnassigned NodeEvent = "unassigned"
	// NodeFlapping is a resource that something else changes again and again, or that this
	// is over: NodeState.Flapping has those that still do.
	NodeFlapping NodeEvent = "flapping"
	// NodeDuplicate is another agent that runs under the same node name.
	NodeDuplicate NodeEvent = "duplicate"
)

// NodeState is the status of a node as it reports it (io.muster.v1.node), in the
// bucket and as a report.
type NodeState struct {
	Protocol string    `json:"protocol"`
	Node     string    `json:"node"`
	Event    NodeEvent `json:"event,omitempty" jsonschema:"enum=started,enum=stopped,enum=refused,enum=dropped,enum=silent,enum=unassigned,enum=duplicate,enum=flapping"`
	Host     string    `json:"host,omitempty" jsonschema_description:"Host name of its machine"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	At       time.Time `json:"at"`
	Groups   []string  `json:"groups"`
	// UnreadGroups are missing where an older agent wrote the state.
	UnreadGroups []string                 `json:"unread_groups,omitempty" jsonschema_description:"Groups that the node could not read at its last attempt, for example without permission; it does not know their newest assignments"`
	Labels       map[string]string        `json:"labels,omitempty"`
	Manifests    map[string]ManifestState `json:"manifests,omitempty" jsonschema_description:"By key in the bucket"`
	Health       HealthCounts             `json:"health,omitzero" jsonschema_description:"Current health checks, by status"`
	Outbox       int                      `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches      int                      `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled       int                      `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping     []FlappingState          `json:"flapping,omitempty" jsonschema_description:"Resources that something else changes again and again, the first ones"`
	Paused       *Paused                  `json:"paused,omitempty" jsonschema_description:"The pause that holds: the node observes and changes nothing; missing for none"`
	// PausedBy is nil too where an older agent wrote the state.
	PausedBy map[string]uint64 `json:"paused_by,omitempty" jsonschema_description:"Revisions of all pauses in force, by control key; older agents omit it"`
	// RejectedControl is nil too where an older agent wrote the state: its Message alone has them.
	RejectedControl map[string]string `json:"rejected_control,omitempty" jsonschema_description:"Why what operators wrote about the node is not in force, by key; older agents have it in the message alone"`
	Clock           ClockOffset       `json:"clock,omitzero" jsonschema_description:"How the node's clock differs from the server's; missing while that is not measured"`
	Message         string            `json:"message,omitempty" jsonschema_description:"What the event is about"`
	// SilentAfter is the time without an update after which the node counts as
	// unreachable; zero means never. Only the state in the bucket has it.
	SilentAfter Duration `json:"silent_after,omitempty" jsonschema_description:"Time without an update after which the node counts as unreachable; only in the bucket"`
	// Dropped is the number of reports that an event dropped is about. DroppedFrom and DroppedTo
	// are the first and the last seq of them, DroppedRanges all, in order.
	Dropped       int        `json:"dropped,omitempty" jsonschema_description:"Number of dropped reports"`
	DroppedFrom   uint64     `json:"dropped_from,omitempty"`
	DroppedTo     uint64     `json:"dropped_to,omitempty"`
	DroppedRanges []SeqRange `json:"dropped_ranges,omitempty" jsonschema_description:"Ranges of seq that were dropped, in order"`
	// Unstored is why the server does not store the state or the reports of the node, by UnstoredState and
	// UnstoredReports. Only answers have it.
	Unstored map[string]string `json:"unstored,omitempty" jsonschema_description:"Why the NATS server does not store the state or the reports of the node; only in answers to requests"`
}

// The keys of NodeState.Unstored.
const (
	UnstoredState   = "state"
	UnstoredReports = "reports"
)

// Node is a node as the fleet knows it.
type Node struct {
	NodeState
	// Silent reports whether its last update is older than its SilentAfter; the rest is
	// that last update. It is kept for 7 days, or for SilentAfter where that is longer.
	Silent bool `json:"silent"`
	// Unreadable names the problem if muster cannot read the state of the node. Such a node has no Manifests. Its Groups are nil if they
	// are not known.
	Unreadable string `json:"unreadable,omitempty"`
	// Heard is the time of its last update.
	Heard time.Time `json:"heard,omitzero"`
}

// Stopped reports whether the node's agent shut down cleanly and has not been seen since.
func (n Node) Stopped() bool { return n.Event == NodeStopped }

// IsSilent reports whether its last update is older than its SilentAfter at a time.
func (n Node) IsSilent(now time.Time) bool {
	after := n.SilentAfter.Std()

	return after > 0 && n.Heard.Add(after).Before(now)
}

// SeqRange is a range of seq, both ends within.
type SeqRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// ManifestState is the status of one manifest on a node.
type ManifestState struct {
	Revision uint64    `json:"revision" jsonschema_description:"Active revision"`
	Digest   string    `json:"digest"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	At       time.Time `json:"at,omitzero"`
	// Counts are missing before the first run, and in a state that is too large.
	Counts Counts `json:"counts,omitzero"`
	// Error is the first error of the last run; the report of the run has them all.
	Error string `json:"error,omitempty" jsonschema_description:"First error of the last run"`
	// Seen is the newest revision known; it differs from Revision when it was rejected.
	Seen uint64 `json:"seen,omitempty" jsonschema_description:"Newest revision seen, where it is not active"`
	// SeenAt is when the bucket stored it: a bucket that was recreated counts from 1 again.
	SeenAt time.Time `json:"seen_at,omitzero" jsonschema_description:"When the bucket stored the newest revision seen"`
	// Late is why Seen is not active.
	Late string `json:"late,omitempty" jsonschema_description:"Why the newest revision is not active"`
	// FailedSince is when the first of the runs ended that failed in a row, also those of
	// earlier revisions; zero where the last one did not fail, and from older agents.
	FailedSince time.Time `json:"failed_since,omitzero" jsonschema_description:"When the first of the runs ended that failed in a row, those of earlier revisions included"`
	// Ran is what ran last, while no run of the active revision has ended: Last has it. It is nil where one has, and
	// where the agent does not know, as older ones.
	Ran *RanRevision `json:"ran,omitempty" jsonschema_description:"What ran last, while no run of the active revision has ended; of revision 0 where nothing ran, missing where that is not known"`
}

// RanRevision is a revision that ran on a node.
type RanRevision struct {
	// Revision is 0 where none ran.
	Revision uint64    `json:"revision"`
	Digest   string    `json:"digest"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Last returns the revision whose run ended last: a paused node accepts revisions that it does not run. Of an older
// agent that runs one for the first time it is that one. It is zero where no revision is active.
func (s ManifestState) Last() RanRevision {
	switch {
	case s.Revision == 0:
		return RanRevision{}
	case s.Outcome == "" && s.Ran != nil:
		return *s.Ran
	}

	return RanRevision{s.Revision, s.Digest, s.Outcome, s.At}
}

// LateRejected begins the Late of a revision that is rejected: it is not tried again
// before something changes.
const LateRejected = "refused: "

// Rejected reports whether the newest revision known is rejected, or the active one
// would not be accepted again.
func (s ManifestState) Rejected() bool { return strings.HasPrefix(s.Late, LateRejected) }

// Facts is what is known of a node, as nested maps, lists and scalars in the
// form of decoded JSON.
type Facts map[string]any

// NodeFacts are the facts that a node stored.
type NodeFacts struct {
	Node  string
	Facts Facts
	// Unreadable is why they cannot be read, empty where they can.
	Unreadable string
}
