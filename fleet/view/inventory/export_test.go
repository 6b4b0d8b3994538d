package inventory

import "time"

// SetPatience changes how long an expression may take that needs no facts.
func (a *Nodes) SetPatience(most time.Duration) { a.selector.plainPatience = most }

// Shared returns how many bytes have the texts that nodes have in common.
func (a *Nodes) Shared() (sum int) {
	for text := range a.states.strings {
		sum += len(text)
	}

	return sum
}
