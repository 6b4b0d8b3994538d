package model

import (
	"strings"
	"time"
)

// NodeEvent is the subject of a report of kind node.
type NodeEvent string

// The events of a node.
const (
	NodeStarted NodeEvent = "started"
	NodeStopped NodeEvent = "stopped"
	NodeRefused NodeEvent = "refused"
	NodeDropped NodeEvent = "dropped"
	// NodeUnassigned means that a manifest is no longer assigned to the node.
	NodeUnassigned NodeEvent = "unassigned"
	// NodeFlapping means that a resource flaps, or no longer flaps. NodeState.Flapping lists the flapping
	// resources.
	NodeFlapping NodeEvent = "flapping"
	// NodeDuplicate means that another agent runs with the same node name.
	NodeDuplicate NodeEvent = "duplicate"
)

// NodeState is the state that a node reports (io.muster.v1.node), in the bucket and as a report.
type NodeState struct {
	Protocol string    `json:"protocol"`
	Node     string    `json:"node"`
	Event    NodeEvent `json:"event,omitempty" jsonschema:"enum=started,enum=stopped,enum=refused,enum=dropped,enum=silent,enum=unassigned,enum=duplicate,enum=flapping"`
	Host     string    `json:"host,omitempty" jsonschema_description:"Host name of its machine"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	At       time.Time `json:"at"`
	Groups   []string  `json:"groups"`
	// Older agents omit UnreadGroups.
	UnreadGroups []string                 `json:"unread_groups,omitempty" jsonschema_description:"Groups that the node could not read at its last attempt, for example without permission; it does not know their newest assignments"`
	Labels       map[string]string        `json:"labels,omitempty"`
	Manifests    map[string]ManifestState `json:"manifests,omitempty" jsonschema_description:"By key in the bucket"`
	Health       HealthCounts             `json:"health,omitzero" jsonschema_description:"Current health checks, by status"`
	Outbox       int                      `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches      int                      `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled       int                      `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping     []FlappingState          `json:"flapping,omitempty" jsonschema_description:"Resources that another program changes repeatedly (the first ones)"`
	Paused       *Paused                  `json:"paused,omitempty" jsonschema_description:"The active pause: the node observes and changes nothing; absent for none"`
	// PausedBy is also nil in the state of an older agent.
	PausedBy map[string]uint64 `json:"paused_by,omitempty" jsonschema_description:"Revisions of all active pauses, by control key; older agents omit it"`
	// RejectedControl is also nil in the state of an older agent, which reports the reasons only in Message.
	RejectedControl map[string]string `json:"rejected_control,omitempty" jsonschema_description:"Reasons for rejected pauses, labels and groups, by control key; older agents report them only in the message"`
	Clock           ClockOffset       `json:"clock,omitzero" jsonschema_description:"Difference between the clocks of the node and the server; absent until it is measured"`
	Message         string            `json:"message,omitempty" jsonschema_description:"Description of the event"`
	// SilentAfter is the time without an update after which the node counts as
	// unreachable; zero means never. Only the state in the bucket has it.
	SilentAfter Duration `json:"silent_after,omitempty" jsonschema_description:"Time without an update after which the node counts as unreachable; only in the bucket"`
	// Dropped is the number of reports of a dropped event. DroppedFrom and DroppedTo are their first and last
	// seq, DroppedRanges all ranges in order.
	Dropped       int        `json:"dropped,omitempty" jsonschema_description:"Number of dropped reports"`
	DroppedFrom   uint64     `json:"dropped_from,omitempty"`
	DroppedTo     uint64     `json:"dropped_to,omitempty"`
	DroppedRanges []SeqRange `json:"dropped_ranges,omitempty" jsonschema_description:"Ranges of seq that were dropped, in order"`
	// Unstored contains the reasons why the server does not store the state or the reports of the node, with
	// the keys UnstoredState and UnstoredReports. Only answers to requests have it.
	Unstored map[string]string `json:"unstored,omitempty" jsonschema_description:"Reasons why the NATS server does not store the state or the reports of the node; only in answers to requests"`
}

// The keys of NodeState.Unstored.
const (
	UnstoredState   = "state"
	UnstoredReports = "reports"
)

// Node is the fleet's view of a node.
type Node struct {
	NodeState
	// Silent means that the last update is older than SilentAfter. muster retains the last update for 7 days,
	// or for SilentAfter if that is longer.
	Silent bool `json:"silent"`
	// Unreadable names the problem if muster cannot read the state of the node. Such a node has no Manifests. Its Groups are nil if they
	// are not known.
	Unreadable string `json:"unreadable,omitempty"`
	// Heard is the time of its last update.
	Heard time.Time `json:"heard,omitzero"`
}

// Stopped reports whether the node's agent shut down cleanly and has not been seen since.
func (n Node) Stopped() bool { return n.Event == NodeStopped }

// IsSilent reports whether the last update is older than SilentAfter at a time.
func (n Node) IsSilent(now time.Time) bool {
	after := n.SilentAfter.Std()

	return after > 0 && n.Heard.Add(after).Before(now)
}

// SeqRange is a range of seq, with both ends included.
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
	// Counts is zero before the first run and in a state that is too large.
	Counts Counts `json:"counts,omitzero"`
	// Error is the first error of the last run. The report of the run has all errors.
	Error string `json:"error,omitempty" jsonschema_description:"First error of the last run"`
	// Seen is the newest known revision. It differs from Revision if it was rejected.
	Seen uint64 `json:"seen,omitempty" jsonschema_description:"Newest known revision, if it is not active"`
	// SeenAt is the time when the bucket stored it. A recreated bucket counts revisions from 1 again.
	SeenAt time.Time `json:"seen_at,omitzero" jsonschema_description:"When the bucket stored the newest known revision"`
	// Late is the reason why Seen is not active.
	Late string `json:"late,omitempty" jsonschema_description:"Reason why the newest revision is not active"`
	// FailedSince is the end of the first of the consecutive failed runs, including runs of earlier
	// revisions. It is zero if the last run did not fail. Older agents omit it.
	FailedSince time.Time `json:"failed_since,omitzero" jsonschema_description:"End of the first of the consecutive failed runs, including runs of earlier revisions"`
	// Ran is the last revision that ran, until a run of the active revision ends; see Last. It is nil after
	// that, and from older agents.
	Ran *RanRevision `json:"ran,omitempty" jsonschema_description:"Last revision that ran, until a run of the active revision ends; revision 0 if none ran; absent if unknown"`
}

// RanRevision is a revision that ran on a node.
type RanRevision struct {
	// Revision is 0 if none ran.
	Revision uint64    `json:"revision"`
	Digest   string    `json:"digest"`
	Outcome  Outcome   `json:"outcome,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Last returns the revision of the last completed run. A paused node activates revisions without running
// them. For an older agent that runs a revision for the first time, it returns that revision. It is zero if
// no revision is active.
func (s ManifestState) Last() RanRevision {
	switch {
	case s.Revision == 0:
		return RanRevision{}
	case s.Outcome == "" && s.Ran != nil:
		return *s.Ran
	}

	return RanRevision{s.Revision, s.Digest, s.Outcome, s.At}
}

// LateRejected is the prefix of Late for a rejected revision. The node does not retry it until something
// changes.
const LateRejected = "refused: "

// Rejected reports whether the newest known revision is rejected, or whether the node would now reject the
// active one.
func (s ManifestState) Rejected() bool { return strings.HasPrefix(s.Late, LateRejected) }

// Facts are the facts of a node, as maps, lists and scalars of decoded JSON.
type Facts map[string]any

// NodeFacts are the stored facts of a node.
type NodeFacts struct {
	Node  string
	Facts Facts
	// Unreadable is the reason why the facts cannot be read, empty if they can.
	Unreadable string
}
