package model

import (
	"encoding/json"
	"strings"
	"time"
)

// Change is one thing that a plan would do, or did.
type Change struct {
	// Action is the type's own word for it, for example store or execute.
	Action string `json:"action" jsonschema_description:"The type's name for the action"`
	// Message is what it would do, in the words of noop: "Would have created the
	// file"; once it is done, "created the file".
	Message string `json:"message,omitempty" jsonschema_description:"What was done; in noop and after a failure, what would have been"`
	// Property is the property that differs, where it is one.
	Property string `json:"property,omitempty" jsonschema_description:"The property that differs"`
	From     string `json:"from,omitempty" jsonschema_description:"Its value before"`
	To       string `json:"to,omitempty" jsonschema_description:"Its value after"`
	// Diff is a unified diff, bounded in size.
	Diff string `json:"diff,omitempty" jsonschema_description:"A unified diff of the content"`
}

// Done returns the change with the message of one that was made.
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
	// Within is the resource that includes the manifest which declares this one.
	Within        Ref    `json:"within,omitzero" jsonschema_description:"The resource that includes the manifest which declares this one"`
	Cause         Cause  `json:"cause,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
	// SkipReason is why a resource was skipped or not run.
	SkipReason string `json:"skip_reason,omitempty"`
	// WouldRefresh are the subscribers that a noop change did not refresh.
	WouldRefresh []Ref `json:"would_refresh,omitempty" jsonschema_description:"Subscribers a real change would have refreshed"`
	// Outputs are what the resource gives to later ones; only in the answer to a
	// request, and not of a sensitive resource.
	Outputs map[string]any `json:"outputs,omitempty" jsonschema_description:"Output and exit code of a command; only in the answer to a request, absent for a sensitive resource"`
	// NotRun means that the run ended before it came to the resource, or that its limit put
	// the change off.
	NotRun bool `json:"not_run,omitempty"`
	// RetryAt is when a change that a limit deferred may be made; zero if there is none. Reports state
	// it in the summary of the run.
	RetryAt time.Time `json:"-"`
	// Drift is the drift that was repaired, or could not be; nil where somebody asked for the
	// change.
	Drift *Repair `json:"drift,omitempty" jsonschema_description:"The drift that was repaired, or could not be; absent where somebody asked for the change"`
}

// Repair is drift of a resource that was repaired, or could not be.
type Repair struct {
	// From is what differed, with its value where that is known: "mode: 0666". It may be empty
	// where the repair failed.
	From string `json:"from" jsonschema_description:"What differed, with its value where that is known; may be empty where the repair failed"`
	// SeenAt is when the machine first said that something changed, also where tries to repair
	// it failed since; where it did not, when the run began that found it.
	SeenAt time.Time `json:"seen_at" jsonschema_description:"When the change was first noticed"`
	// RepairedAt is when it was changed back, and that was durable; it was verified then. It
	// is zero where that failed.
	RepairedAt time.Time `json:"repaired_at,omitzero" jsonschema_description:"When it was changed back, before that was verified; absent where that failed"`
	// Latency is the time between the two.
	Latency time.Duration `json:"latency,omitempty" jsonschema_description:"Nanoseconds from seen_at to repaired_at"`
}

// Repaired reports whether drift was repaired.
func (t *Transaction) Repaired() bool { return t.Drift != nil && !t.Failed }

// Ref returns the resource's reference.
func (t *Transaction) Ref() Ref { return Ref{Type: t.Type, Name: t.Name} }

// Label returns the reference, after the place where a document declares it.
func (t *Transaction) Label() string {
	if t.Source.Line == 0 {
		return t.Ref().String()
	}

	return t.Source.String() + ": " + t.Ref().String()
}

// Outcome returns the one word for the transaction: the most serious that applies.
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
