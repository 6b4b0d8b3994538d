package model

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
