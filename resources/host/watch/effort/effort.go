// Package effort bounds the part of the time that work takes which others can cause.
package effort

import "time"

// Free is how much time work may take before any of it has to wait.
const Free = 20 * time.Millisecond

// share is the part of the time that work may take, as its inverse.
const share = 20

// Spent is the time that work of a kind has taken lately, all of it together. Zero is none.
// It is for one goroutine.
type Spent struct {
	time time.Duration
	// at is when that was spent.
	at time.Time
}

// left is what still counts of what was spent.
func (s *Spent) left(now time.Time) time.Duration {
	return max(0, s.time-max(0, now.Sub(s.at))/share)
}

// Add notes that work took some time until now.
func (s *Spent) Add(took time.Duration, now time.Time) {
	s.time, s.at = s.left(now)+took, now
}

// Due returns when what was done last at a time may be done again: the more time all
// have taken, the later.
func (s *Spent) Due(last, now time.Time) time.Time {
	left := s.left(now)
	if left <= Free {
		return now
	}

	return last.Add(share * left)
}
