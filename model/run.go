package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Counts counts the resources of a run or session by outcome. A resource may count more than once: a
// refreshed resource also counts as changed.
type Counts struct {
	Total        int          `json:"total"`
	Unique       int          `json:"unique"`
	Changed      int          `json:"changed"`
	Failed       int          `json:"failed"`
	Skipped      int          `json:"skipped"`
	Stable       int          `json:"stable"`
	Refreshed    int          `json:"refreshed"`
	Unmet        int          `json:"unmet"`
	NotRun       int          `json:"not_run"`
	Noop         int          `json:"noop" jsonschema_description:"Predicted changes of noop, included in changed"`
	HealthChecks HealthCounts `json:"health_checks" jsonschema_description:"Health checks that ran, by status"`
}

// Made returns the number of real changes.
func (c *Counts) Made() int { return c.Changed - c.Noop }

// Text lists the counts that are not 0, such as "3 resources, 1 changed".
func (c *Counts) Text() string {
	text := fmt.Sprintf("%d resources", c.Total)
	if c.Total == 1 {
		text = "1 resource"
	}
	for _, more := range []struct {
		count int
		word  string
	}{{c.Made(), "changed"}, {c.Noop, "would change"}, {c.Failed, "failed"}, {c.Skipped, "skipped"}, {c.NotRun, "not run"}} {
		if more.count > 0 {
			text += fmt.Sprintf(", %d %s", more.count, more.word)
		}
	}

	return text
}

// Add counts one transaction, except in Unique.
func (c *Counts) Add(t *Transaction) {
	c.Total++
	for _, h := range t.HealthCheck {
		c.HealthChecks.Add(h.Status)
	}
	switch {
	case t.NotRun:
		c.NotRun++
		return
	case len(t.UnmetRequirements) > 0:
		c.Unmet++
		c.Skipped++
		return
	case t.Skipped:
		c.Skipped++
		return
	case t.Failed:
		c.Failed++
	case t.Changed:
		c.Changed++
		if t.Noop {
			c.Noop++
		}
	default:
		c.Stable++
	}
	if t.Refreshed {
		c.Refreshed++
	}
}

// Run is the summary of one reconciliation of one manifest (io.muster.v1.run).
type Run struct {
	Protocol  string        `json:"protocol"`
	RunID     string        `json:"run_id" jsonschema_description:"KSUID of the run"`
	Node      string        `json:"node,omitempty"`
	Manifest  string        `json:"manifest" jsonschema_description:"Key of the manifest in the bucket, or its source"`
	Revision  uint64        `json:"revision,omitempty" jsonschema_description:"Revision of the manifest's key in the bucket"`
	Digest    string        `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest that ran"`
	Cause     Cause         `json:"cause"`
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration" jsonschema_description:"Nanoseconds"`
	Counts    Counts        `json:"counts"`
	Noop      bool          `json:"noop"`
	Errors    []string      `json:"error,omitempty" jsonschema_description:"Errors, resources first"`
	Version   string        `json:"version,omitempty" jsonschema_description:"Version of muster"`
	Drift     Drifted       `json:"drift,omitzero"`
	Unchanged []Unchanged   `json:"unchanged,omitempty" jsonschema_description:"Results that were not reported again, by the run that reported them"`
	RetryAt   time.Time     `json:"resumes,omitzero" jsonschema_description:"When the next change that a limit deferred may be made"`
	Retry     bool          `json:"retry,omitempty" jsonschema_description:"Whether the run repeats a failed run for the same cause"`
	// Refused means that nothing ran because the manifest is not valid.
	Refused       bool   `json:"refused,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
}

// Drifted counts the drift that an unrequested run found.
type Drifted struct {
	Detected int           `json:"detected"`
	Repaired int           `json:"repaired"`
	Latency  time.Duration `json:"latency,omitempty" jsonschema_description:"Nanoseconds from wake-up to repair"`
}

// Unchanged counts the results of a run that equal the reported results of an earlier run.
type Unchanged struct {
	RunID        string `json:"run_id" jsonschema_description:"The run that reported them"`
	Transactions int    `json:"transactions" jsonschema_description:"Number of transactions"`
}

// Outcome returns the outcome of the run.
func (r *Run) Outcome() Outcome {
	switch {
	case r.Refused:
		return OutcomeRefused
	case r.Counts.Failed > 0 || r.Counts.Unmet > 0 || len(r.Errors) > 0:
		return OutcomeFailed
	case r.Counts.NotRun > 0:
		return OutcomeNotRun
	case r.Counts.Changed > 0 && r.Counts.Changed == r.Counts.Noop:
		return OutcomeNoop
	case r.Counts.Changed > 0:
		return OutcomeChanged
	default:
		return OutcomeStable
	}
}

// OK reports whether every resource is in its desired state, or would be.
func (r *Run) OK() bool {
	return !r.Refused && r.Counts.Failed == 0 && r.Counts.Unmet == 0 && r.Counts.NotRun == 0 && len(r.Errors) == 0
}

// Change is a planned or completed change.
type Change struct {
	Action   string `json:"action" jsonschema_description:"The type's name for the action"`
	Message  string `json:"message,omitempty" jsonschema_description:"Description of the change; in noop and after a failure, of the planned change"`
	Property string `json:"property,omitempty" jsonschema_description:"Differing property"`
	From     string `json:"from,omitempty" jsonschema_description:"Its value before"`
	To       string `json:"to,omitempty" jsonschema_description:"Its value after"`
	Diff     string `json:"diff,omitempty" jsonschema_description:"A unified diff of the content"`
}

// Done returns the change with the message of a completed change.
func (c Change) Done() Change {
	c.Message = strings.TrimPrefix(c.Message, "Would have ")

	return c
}

// Transaction is the result of one resource in one run
// (io.choria.ccm.v1.transaction.event).
type Transaction struct {
	Protocol          string          `json:"protocol"`
	EventID           string          `json:"event_id" jsonschema_description:"KSUID of this event"`
	Timestamp         time.Time       `json:"timestamp"`
	Type              string          `json:"type" jsonschema_description:"Resource type"`
	Provider          string          `json:"provider,omitempty"`
	Name              string          `json:"name"`
	Alias             string          `json:"alias,omitempty"`
	RequestedEnsure   string          `json:"requested_ensure,omitempty"`
	FinalEnsure       string          `json:"final_ensure,omitempty"`
	Duration          time.Duration   `json:"duration" jsonschema_description:"Nanoseconds"`
	Properties        json.RawMessage `json:"properties,omitempty" jsonschema_description:"Desired properties; absent for a sensitive resource"`
	Status            json.RawMessage `json:"status,omitempty" jsonschema_description:"Observed state afterwards; absent for a sensitive resource"`
	NoopMessage       string          `json:"noop_message,omitempty"`
	HealthCheck       []HealthResult  `json:"health_check,omitempty" jsonschema_description:"Results of its health checks, in their order"`
	HealthCheckOnly   bool            `json:"health_check_only,omitempty"`
	Errors            []string        `json:"error,omitempty"`
	Changed           bool            `json:"changed"`
	Refreshed         bool            `json:"refreshed"`
	Failed            bool            `json:"failed"`
	Skipped           bool            `json:"skipped"`
	Noop              bool            `json:"noop"`
	UnmetRequirements []Ref           `json:"unmet_requirements,omitempty"`

	RunID         string   `json:"run_id,omitempty"`
	Node          string   `json:"node,omitempty"`
	Manifest      string   `json:"manifest,omitempty"`
	Revision      uint64   `json:"revision,omitempty" jsonschema_description:"Revision of the manifest's key in the bucket"`
	Digest        string   `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest that ran"`
	Changes       []Change `json:"changes,omitempty" jsonschema_description:"Planned changes, with diffs"`
	Source        Position `json:"source,omitzero" jsonschema_description:"Where the resource is declared"`
	Within        Ref      `json:"within,omitzero" jsonschema_description:"Resource that includes the manifest of this resource"`
	Cause         Cause    `json:"cause,omitempty"`
	CorrelationID string   `json:"correlation_id,omitempty"`
	// SkipReason is the reason why a resource was skipped or did not run.
	SkipReason   string         `json:"skip_reason,omitempty"`
	WouldRefresh []Ref          `json:"would_refresh,omitempty" jsonschema_description:"Subscribers a real change would have refreshed"`
	Outputs      map[string]any `json:"outputs,omitempty" jsonschema_description:"Output and exit code of a command; only in the answer to a request, absent for a sensitive resource"`
	// NotRun means that the run ended before the resource, or that its limit deferred the change.
	NotRun bool `json:"not_run,omitempty"`
	// RetryAt is when a change that a limit deferred may be made; zero if there is none. Reports state
	// it in the summary of the run.
	RetryAt time.Time `json:"-"`
	Drift   *Repair   `json:"drift,omitempty" jsonschema_description:"Repaired or unrepaired drift; absent for a requested change"`
}

// Repair describes drift of a resource and its repair.
type Repair struct {
	From string `json:"from" jsonschema_description:"Difference, with its value if it is known; may be empty if the repair failed"`
	// SeenAt is the time of the first signal of the change, also if earlier repairs failed. Without a signal
	SeenAt     time.Time     `json:"seen_at" jsonschema_description:"When the change was first noticed"`
	RepairedAt time.Time     `json:"repaired_at,omitzero" jsonschema_description:"When the repair was durable, before it was verified; absent if the repair failed"`
	Latency    time.Duration `json:"latency,omitempty" jsonschema_description:"Nanoseconds from seen_at to repaired_at"`
}

// Repaired reports whether drift was repaired.
func (t *Transaction) Repaired() bool { return t.Drift != nil && !t.Failed }

// Ref returns the resource's reference.
func (t *Transaction) Ref() Ref { return Ref{Type: t.Type, Name: t.Name} }

// Label returns the reference after the position of its declaration.
func (t *Transaction) Label() string {
	if t.Source.Line == 0 {
		return t.Ref().String()
	}

	return t.Source.String() + ": " + t.Ref().String()
}

// Outcome returns the most serious outcome that applies.
func (t *Transaction) Outcome() Outcome {
	switch {
	case t.NotRun:
		return OutcomeNotRun
	case len(t.UnmetRequirements) > 0:
		return OutcomeUnmet
	case t.Failed:
		return OutcomeFailed
	case t.Skipped:
		return OutcomeSkipped
	case t.Changed && t.Noop:
		return OutcomeNoop
	case t.Refreshed:
		return OutcomeRefreshed
	case t.Changed:
		return OutcomeChanged
	default:
		return OutcomeStable
	}
}

// OK reports whether the resource is in its desired state, or would be.
func (t *Transaction) OK() bool { return !t.Failed && !t.NotRun && len(t.UnmetRequirements) == 0 }

// Outcome is the result of a resource or a run. It is one token of a report's subject.
type Outcome string

// The outcomes.
const (
	OutcomeStable    Outcome = "stable"
	OutcomeChanged   Outcome = "changed"
	OutcomeRefreshed Outcome = "refreshed"
	OutcomeFailed    Outcome = "failed"
	OutcomeSkipped   Outcome = "skipped"
	// OutcomeNoop means that a change would have been made.
	OutcomeNoop Outcome = "noop"
	// OutcomeUnmet means that a requirement of the resource failed.
	OutcomeUnmet Outcome = "unmet"
	// OutcomeRefused means that a document was rejected.
	OutcomeRefused Outcome = "refused"
	// OutcomeNotRun means that the run did not reach the resource.
	OutcomeNotRun Outcome = "notrun"
)

// Rejected is the displayed name of OutcomeRefused.
const Rejected = "rejected"

// OutcomeNamed returns the outcome with a name, including Rejected.
func OutcomeNamed(word string) Outcome {
	if word == Rejected {
		return OutcomeRefused
	}

	return Outcome(word)
}

// IsFailure reports whether a run with this outcome was incomplete.
func (o Outcome) IsFailure() bool {
	return o == OutcomeFailed || o == OutcomeNotRun || o == OutcomeRefused
}

// Cause is the reason for a run.
type Cause string

// The causes.
const (
	// CauseManifest is a new or changed manifest.
	CauseManifest Cause = "manifest"
	// CauseDrift is a change of the machine by another program.
	CauseDrift Cause = "drift"
	// CauseSchedule is the agent's interval.
	CauseSchedule Cause = "schedule"
	// CauseEnsure is an ad-hoc request.
	CauseEnsure Cause = "ensure"
	// CauseRequest is a run request of an operator.
	CauseRequest Cause = "request"
	// CauseHealth is a health check that failed.
	CauseHealth Cause = "health"
	// CauseCommand is a command line.
	CauseCommand Cause = "command"
)

// IsUnasked reports whether the run was unrequested. Differences that it finds are drift.
func (c Cause) IsUnasked() bool {
	return c == CauseDrift || c == CauseSchedule || c == CauseHealth
}
