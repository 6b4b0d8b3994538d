package view

import "time"

// Forget makes the next overview a new one.
func (f *Fleet) Forget() { f.overview.made = time.Time{} }

// The event log for tests.
type (
	ActivityLog     = activityLog
	ActivityOptions = activityOptions
)

// NewActivityLog returns an empty event log.
func NewActivityLog(o ActivityOptions) *ActivityLog { return newActivityLog(o) }

// FoundRuns returns how many runs are found by their ids.
func (l *activityLog) FoundRuns() int { return len(l.runs.byID) }
