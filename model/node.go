package model

import (
	"fmt"
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
	Protocol        string                   `json:"protocol"`
	Node            string                   `json:"node"`
	Event           NodeEvent                `json:"event,omitempty" jsonschema:"enum=started,enum=stopped,enum=refused,enum=dropped,enum=silent,enum=unassigned,enum=duplicate,enum=flapping"`
	Host            string                   `json:"host,omitempty" jsonschema_description:"Host name of its machine"`
	Version         string                   `json:"version"`
	Started         time.Time                `json:"started"`
	At              time.Time                `json:"at"`
	Groups          []string                 `json:"groups"`
	UnreadGroups    []string                 `json:"unread_groups,omitempty" jsonschema_description:"Groups that the node could not read at its last attempt, for example without permission; it does not know their newest assignments"`
	Labels          map[string]string        `json:"labels,omitempty"`
	Manifests       map[string]ManifestState `json:"manifests,omitempty" jsonschema_description:"By key in the bucket"`
	Health          HealthCounts             `json:"health,omitzero" jsonschema_description:"Current health checks, by status"`
	Outbox          int                      `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches         int                      `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled          int                      `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping        []FlappingState          `json:"flapping,omitempty" jsonschema_description:"Resources that another program changes repeatedly (the first ones)"`
	Paused          *Paused                  `json:"paused,omitempty" jsonschema_description:"The active pause: the node observes and changes nothing; absent for none"`
	PausedBy        map[string]uint64        `json:"paused_by,omitempty" jsonschema_description:"Revisions of all active pauses, by control key; older agents omit it"`
	RejectedControl map[string]string        `json:"rejected_control,omitempty" jsonschema_description:"Reasons for rejected pauses, labels and groups, by control key; older agents report them only in the message"`
	Clock           ClockOffset              `json:"clock,omitzero" jsonschema_description:"Difference between the clocks of the node and the server; absent until it is measured"`
	Message         string                   `json:"message,omitempty" jsonschema_description:"Description of the event"`
	SilentAfter     Duration                 `json:"silent_after,omitempty" jsonschema_description:"Time without an update after which the node counts as unreachable; only in the bucket"`
	// Dropped is the number of reports of a dropped event. DroppedFrom and DroppedTo are their first and last
	Dropped       int               `json:"dropped,omitempty" jsonschema_description:"Number of dropped reports"`
	DroppedFrom   uint64            `json:"dropped_from,omitempty"`
	DroppedTo     uint64            `json:"dropped_to,omitempty"`
	DroppedRanges []SeqRange        `json:"dropped_ranges,omitempty" jsonschema_description:"Ranges of seq that were dropped, in order"`
	Unstored      map[string]string `json:"unstored,omitempty" jsonschema_description:"Reasons why the NATS server does not store the state or the reports of the node; only in answers to requests"`
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
	Counts      Counts       `json:"counts,omitzero"`
	Error       string       `json:"error,omitempty" jsonschema_description:"First error of the last run"`
	Seen        uint64       `json:"seen,omitempty" jsonschema_description:"Newest known revision, if it is not active"`
	SeenAt      time.Time    `json:"seen_at,omitzero" jsonschema_description:"When the bucket stored the newest known revision"`
	Late        string       `json:"late,omitempty" jsonschema_description:"Reason why the newest revision is not active"`
	FailedSince time.Time    `json:"failed_since,omitzero" jsonschema_description:"End of the first of the consecutive failed runs, including runs of earlier revisions"`
	Ran         *RanRevision `json:"ran,omitempty" jsonschema_description:"Last revision that ran, until a run of the active revision ends; revision 0 if none ran; absent if unknown"`
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

// Package is an installed package of a node.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Arch    string `json:"arch,omitempty"`
	// Manager is deb or rpm, the scheme of the version.
	Manager string `json:"manager"`
}

// MaxPackages is the maximum number of packages in an inventory.
const MaxPackages = 100_000

// Inventory lists the packages installed on a node.
type Inventory struct {
	Node string    `json:"node"`
	At   time.Time `json:"at"`
	// Packages are sorted by name.
	Packages []Package `json:"packages"`
	// Incomplete is the reason why versions or packages are missing; empty if the inventory is complete.
	Incomplete string `json:"incomplete,omitempty"`
	// Unreadable is the reason why a stored inventory cannot be decoded. It is never stored.
	Unreadable string `json:"-"`
}

// Offset is a duration with a sign, written as text in documents: 1h0m0s, -250ms.
type Offset time.Duration

// Std returns the standard library's duration.
func (o Offset) Std() time.Duration { return time.Duration(o) }

// String returns the text form, for example -1m30s.
func (o Offset) String() string { return time.Duration(o).String() }

// MarshalText returns the text form.
func (o Offset) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the text form; a number without a unit is an error.
func (o *Offset) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("invalid offset %q, write it with its unit, for example -30s", b)
	}
	*o = Offset(parsed)

	return nil
}

// ClockOffset is the difference between the clocks of a node and its NATS server.
type ClockOffset struct {
	Offset Offset   `json:"offset" jsonschema_description:"How far the node's clock is ahead; negative if it is behind"`
	Within Duration `json:"within" jsonschema_description:"Maximum error: half the round trip of the measurement, plus the clock drift since"`
}

const apparentOffset = 5 * time.Second

// Apparent reports whether the clocks differ by at least 5 seconds and by more than the measurement error.
func (c ClockOffset) Apparent() bool {
	return c.distance() >= max(apparentOffset, c.Within.Std())
}

func (c ClockOffset) distance() time.Duration { return c.Offset.Std().Abs() }

// String describes the difference, for example "1h0m0s ahead of the NATS server's".
func (c ClockOffset) String() string {
	side := "ahead of"
	if c.Offset < 0 {
		side = "behind"
	}
	unit := time.Millisecond
	if c.Apparent() {
		unit = time.Second
	}

	return fmt.Sprintf("%s %s the NATS server's", c.distance().Round(unit), side)
}

// AgentStatus is the answer of an agent on its local socket (io.muster.v1.agent). Each part of the agent
// fills its own fields.
type AgentStatus struct {
	Protocol  string             `json:"protocol"`
	Node      string             `json:"node"`
	Groups    []string           `json:"groups"`
	Version   string             `json:"version"`
	PID       int                `json:"pid"`
	StateDir  string             `json:"state_dir"`
	Started   time.Time          `json:"started"`
	At        time.Time          `json:"at" jsonschema_description:"Time of the answer"`
	Stopping  time.Time          `json:"stopping,omitzero" jsonschema_description:"Start time of the shutdown"`
	NATS      Connected          `json:"nats"`
	Running   []RunningRun       `json:"running" jsonschema_description:"Runs in progress, requests included"`
	Manifests []AssignedManifest `json:"manifests" jsonschema_description:"Assigned manifests, by key"`
	Health    HealthCounts       `json:"health" jsonschema_description:"Current health checks, by status"`
	Outbox    int                `json:"outbox" jsonschema_description:"Reports waiting to be published"`
	Watches   int                `json:"watches" jsonschema_description:"Resources that are watched for drift"`
	Polled    int                `json:"polled,omitempty" jsonschema_description:"Resources that are polled, because they cannot be watched"`
	Flapping  []FlappingState    `json:"flapping,omitempty" jsonschema_description:"Resources that another program changes repeatedly (the first ones)"`
	Paused    *Paused            `json:"paused,omitempty" jsonschema_description:"The active pause: the node observes and changes nothing; absent for none"`
	Clock     ClockOffset        `json:"clock,omitzero" jsonschema_description:"Difference between the clocks of the node and the server; absent until it is measured"`
	Notices   []string           `json:"notices" jsonschema_description:"Problems of the node: a rejected configuration, another agent with the same id, an unreadable bucket"`
	LogLevel  string             `json:"log_level"`
}

// Connected is the connection to NATS.
type Connected struct {
	Connected bool      `json:"connected"`
	Server    string    `json:"server,omitempty" jsonschema_description:"URL of the server, or URLs of the servers that the agent tries"`
	Since     time.Time `json:"since,omitzero" jsonschema_description:"When the connection was made or lost"`
	Error     string    `json:"error,omitempty" jsonschema_description:"Last error"`
	ErrorAt   time.Time `json:"error_at,omitzero"`
}

// RunningRun is a run in progress.
type RunningRun struct {
	RunID    string    `json:"run_id"`
	Manifest string    `json:"manifest" jsonschema_description:"Key of the manifest, or ensure for a request"`
	Cause    Cause     `json:"cause"`
	Part     []Ref     `json:"part,omitempty" jsonschema_description:"Resources of a partial run; empty for the complete manifest"`
	Started  time.Time `json:"started" jsonschema_description:"When the run started, or started to wait"`
	WaitsFor string    `json:"waits_for,omitempty" jsonschema_description:"The run that it waits for, because both use the same path, packages or services"`
}

// AssignedManifest is a key that is assigned to the node.
type AssignedManifest struct {
	Key   string        `json:"key"`
	State ManifestState `json:"state"`
	Last  *LastRun      `json:"last,omitempty" jsonschema_description:"Last run since the start of the agent"`
}

// LastRun is the last run of a manifest.
type LastRun struct {
	RunID      string      `json:"run_id"`
	Revision   uint64      `json:"revision,omitempty"`
	Cause      Cause       `json:"cause"`
	Outcome    Outcome     `json:"outcome"`
	Started    time.Time   `json:"started"`
	Duration   Duration    `json:"duration"`
	Counts     Counts      `json:"counts"`
	Errors     []string    `json:"errors,omitempty"`
	Deviations []Deviation `json:"deviations,omitempty" jsonschema_description:"The first resources that are not in their desired state"`
	More       int         `json:"more,omitempty" jsonschema_description:"Number of further resources"`
	Repair     *LastRepair `json:"repair,omitempty" jsonschema_description:"Last repair of drift; may be later than this run"`
}

// LastRepair is the last repair of drift of a manifest.
type LastRepair struct {
	Resource string    `json:"resource"`
	Outcome  Outcome   `json:"outcome"`
	At       time.Time `json:"at"`
	Latency  Duration  `json:"latency,omitempty" jsonschema_description:"Time from the detection of the drift to the repair"`
}

// Deviation is a resource that is not in its desired state.
type Deviation struct {
	Resource string  `json:"resource"`
	Outcome  Outcome `json:"outcome"`
	Reason   string  `json:"reason,omitempty"`
}
