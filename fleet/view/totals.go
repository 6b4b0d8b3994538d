package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Totals count what was read of what the stream stored since the view began, and how far that is.
type Totals struct {
	// Reports are counted once each, by kind and outcome.
	Reports []ReportCount
	// Unreadable counts the messages that could not be read as a whole.
	Unreadable uint64
	// Repaired counts the drift that was repaired.
	Repaired uint64
	// Behind is how many messages the stream has that are not read yet.
	Behind uint64
	// Newest is when the server stored the newest message that was read, zero for none.
	Newest time.Time
}

// ReportCount is how many reports of a kind had an outcome.
type ReportCount struct {
	Kind    string
	Outcome model.Outcome
	Count   uint64
}
