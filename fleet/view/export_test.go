package view

import "time"

// Forget makes the next overview a new one.
func (f *Fleet) Forget() { f.overview.made = time.Time{} }

// Seq returns the newest sequence.
func (f *Fleet) Seq() uint64 { return f.last.seq }

// SetPatience changes how long an expression may take that needs no facts.
func (f *Fleet) SetPatience(most time.Duration) { f.selector.patience = most }

// Shared returns how many bytes have the texts that nodes have in common.
func (f *Fleet) Shared() (sum int) {
	for text := range f.states.strings {
		sum += len(text)
	}

	return sum
}

// FoundRuns returns how many runs are found by their ids.
func (f *Fleet) FoundRuns() int { return len(f.runs.byID) }
