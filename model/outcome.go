package model

// Outcome is the result of a resource or a run: one token, also part of a report's
// subject.
type Outcome string

// The outcomes.
const (
	OutcomeStable    Outcome = "stable"
	OutcomeChanged   Outcome = "changed"
	OutcomeRefreshed Outcome = "refreshed"
	OutcomeFailed    Outcome = "failed"
	OutcomeSkipped   Outcome = "skipped"
	// OutcomeNoop is a change that would have been made.
	OutcomeNoop Outcome = "noop"
	// OutcomeUnmet is a resource whose requirements were not met.
	OutcomeUnmet Outcome = "unmet"
	// OutcomeRefused is a document that was rejected.
	OutcomeRefused Outcome = "refused"
	// OutcomeNotRun is a resource that a run did not reach.
	OutcomeNotRun Outcome = "notrun"
)

// Rejected is the word that people read for OutcomeRefused.
const Rejected = "rejected"

// OutcomeNamed returns the outcome of a word, which may be Rejected.
func OutcomeNamed(word string) Outcome {
	if word == Rejected {
		return OutcomeRefused
	}

	return Outcome(word)
}

// IsFailure reports whether that is how a run ends which did not do all that it was to do.
func (o Outcome) IsFailure() bool {
	return o == OutcomeFailed || o == OutcomeNotRun || o == OutcomeRefused
}

// Cause is why something ran.
type Cause string

// The causes.
const (
	// CauseManifest is a manifest that is new or changed.
	CauseManifest Cause = "manifest"
	// CauseDrift is a change of the machine that muster did not make.
	CauseDrift Cause = "drift"
	// CauseSchedule is the agent's interval.
	CauseSchedule Cause = "schedule"
	// CauseEnsure is an ad-hoc request.
	CauseEnsure Cause = "ensure"
	// CauseRequest is that somebody asked the node to run what is assigned.
	CauseRequest Cause = "request"
	// CauseHealth is a health check that failed.
	CauseHealth Cause = "health"
	// CauseCommand is a command line.
	CauseCommand Cause = "command"
)

// IsUnasked reports whether nobody requested a run of this cause: differences that
// it finds are drift.
func (c Cause) IsUnasked() bool {
	return c == CauseDrift || c == CauseSchedule || c == CauseHealth
}
