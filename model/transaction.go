package model

import (
	"encoding/json"
	"strings"
	"time"
)

// Change is a planned or completed change.
type Change struct {
	// Action is the type's name of the action, for example store or execute.
	Action string `json:"action" jsonschema_description:"The type's name for the action"`
	// Message describes the change. Noop uses "Would have created the file", a completed change "created the
	// file".
	Message string `json:"message,omitempty" jsonschema_description:"Description of the change; in noop and after a failure, of the planned change"`
	// Property is the differing property, if the change concerns one.
	Property string `json:"property,omitempty" jsonschema_description:"Differing property"`
	From     string `json:"from,omitempty" jsonschema_description:"Its value before"`
	To       string `json:"to,omitempty" jsonschema_description:"Its value after"`
	// Diff is a unified diff, bounded in size.
	Diff string `json:"diff,omitempty" jsonschema_description:"A unified diff of the content"`
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

	RunID    string   `json:"run_id,omitempty"`
	Node     string   `json:"node,omitempty"`
	Manifest string   `json:"manifest,omitempty"`
	Revision uint64   `json:"revision,omitempty" jsonschema_description:"Revision of the manifest's key in the bucket"`
	Digest   string   `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest that ran"`
	Changes  []Change `json:"changes,omitempty" jsonschema_description:"Planned changes, with diffs"`
	Source   Position `json:"source,omitzero" jsonschema_description:"Where the resource is declared"`
	// Within is the resource that includes the manifest of this resource.
	Within        Ref    `json:"within,omitzero" jsonschema_description:"Resource that includes the manifest of this resource"`
	Cause         Cause  `json:"cause,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
	// SkipReason is the reason why a resource was skipped or did not run.
	SkipReason string `json:"skip_reason,omitempty"`
	// WouldRefresh are the subscribers that a noop change did not refresh.
	WouldRefresh []Ref `json:"would_refresh,omitempty" jsonschema_description:"Subscribers a real change would have refreshed"`
	// Outputs are the values for later resources. Only the answer to a request has them. A sensitive resource
	// has none.
	Outputs map[string]any `json:"outputs,omitempty" jsonschema_description:"Output and exit code of a command; only in the answer to a request, absent for a sensitive resource"`
	// NotRun means that the run ended before the resource, or that its limit deferred the change.
	NotRun bool `json:"not_run,omitempty"`
	// RetryAt is when a change that a limit deferred may be made; zero if there is none. Reports state
	// it in the summary of the run.
	RetryAt time.Time `json:"-"`
	// Drift is the repaired or unrepaired drift, nil for a requested change.
	Drift *Repair `json:"drift,omitempty" jsonschema_description:"Repaired or unrepaired drift; absent for a requested change"`
}

// Repair describes drift of a resource and its repair.
type Repair struct {
	// From is the difference, with its value if it is known: "mode: 0666". It may be empty if the repair
	// failed.
	From string `json:"from" jsonschema_description:"Difference, with its value if it is known; may be empty if the repair failed"`
	// SeenAt is the time of the first signal of the change, also if earlier repairs failed. Without a signal
	// it is the start of the run that found the drift.
	SeenAt time.Time `json:"seen_at" jsonschema_description:"When the change was first noticed"`
	// RepairedAt is the time when the repair was durable, before it was verified. It is zero if the repair
	// failed.
	RepairedAt time.Time `json:"repaired_at,omitzero" jsonschema_description:"When the repair was durable, before it was verified; absent if the repair failed"`
	// Latency is the time from SeenAt to RepairedAt.
	Latency time.Duration `json:"latency,omitempty" jsonschema_description:"Nanoseconds from seen_at to repaired_at"`
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
