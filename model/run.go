package model

import (
	"fmt"
	"time"
)

// Counts counts the resources of a run or session by outcome. A resource may count more than once: a
// refreshed resource also counts as changed.
type Counts struct {
	Total     int `json:"total"`
	Unique    int `json:"unique"`
	Changed   int `json:"changed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Stable    int `json:"stable"`
	Refreshed int `json:"refreshed"`
	Unmet     int `json:"unmet"`
	NotRun    int `json:"not_run"`
	// Noop counts the changes that noop only predicted. Changed includes them.
	Noop int `json:"noop" jsonschema_description:"Predicted changes of noop, included in changed"`
	// HealthChecks counts the health checks that ran.
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
	Protocol string        `json:"protocol"`
	RunID    string        `json:"run_id" jsonschema_description:"KSUID of the run"`
	Node     string        `json:"node,omitempty"`
	Manifest string        `json:"manifest" jsonschema_description:"Key of the manifest in the bucket, or its source"`
	Revision uint64        `json:"revision,omitempty" jsonschema_description:"Revision of the manifest's key in the bucket"`
	Digest   string        `json:"digest,omitempty" jsonschema_description:"sha256-… of the manifest that ran"`
	Cause    Cause         `json:"cause"`
	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration" jsonschema_description:"Nanoseconds"`
	Counts   Counts        `json:"counts"`
	Noop     bool          `json:"noop"`
	Errors   []string      `json:"error,omitempty" jsonschema_description:"Errors; errors of resources come first"`
	Version  string        `json:"version,omitempty" jsonschema_description:"Version of muster"`
	Drift    Drifted       `json:"drift,omitzero"`
	// Unchanged lists the results in Counts that were not reported again.
	Unchanged []Unchanged `json:"unchanged,omitempty" jsonschema_description:"Results that were not reported again, by the run that reported them"`
	// RetryAt is when the first change that a limit deferred may be made; zero if there is none.
	RetryAt time.Time `json:"resumes,omitzero" jsonschema_description:"When the next change that a limit deferred may be made"`
	// Retry means that the run repeats a failed run for the same cause, without new drift and without a newer
	// revision. Older agents omit it.
	Retry bool `json:"retry,omitempty" jsonschema_description:"Whether the run repeats a failed run for the same cause"`
	// Refused means that nothing ran because the manifest is not valid.
	Refused       bool   `json:"refused,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
}

// Drifted counts the drift that an unrequested run found.
type Drifted struct {
	Detected int `json:"detected"`
	Repaired int `json:"repaired"`
	// Latency is from the wake-up to the end of the repair.
	Latency time.Duration `json:"latency,omitempty" jsonschema_description:"Nanoseconds from wake-up to repair"`
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
