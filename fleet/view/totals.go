package view

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Totals counts the messages of the stream since the view began, and the unread messages.
type Totals struct {
	// Reports are counted once each, by kind and outcome.
	Reports []ReportCount
	// Unreadable counts the messages that could not be read as a whole.
	Unreadable uint64
	// Repaired counts repairs of drift.
	Repaired uint64
	// Behind is the number of unread messages of the stream.
	Behind uint64
	// Newest is the time when the server stored the newest read message, zero for none.
	Newest time.Time
}

// ReportCount is the number of reports of a kind and outcome.
type ReportCount struct {
	Kind    string
	Outcome model.Outcome
	Count   uint64
}
