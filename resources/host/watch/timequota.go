package watch

import "time"

// freeTime is how much time work may take before any of it has to wait.
const freeTime = 20 * time.Millisecond

// quotaDivisor is the part of the time that work may take, as its inverse.
const quotaDivisor = 20

// timeQuota is the time that work of a kind has taken lately, all of it together. Zero is none.
// It is for one goroutine.
type timeQuota struct {
	time time.Duration
	// at is when that was spent.
	at time.Time
}

// left is what still counts of what was spent.
func (s *timeQuota) left(now time.Time) time.Duration {
	return max(0, s.time-max(0, now.Sub(s.at))/quotaDivisor)
}

// Add notes that work took some time until now.
func (s *timeQuota) Add(took time.Duration, now time.Time) {
	s.time, s.at = s.left(now)+took, now
}

// Due returns when what was done last at a time may be done again: the more time all
// have taken, the later.
func (s *timeQuota) Due(last, now time.Time) time.Time {
	left := s.left(now)
	if left <= freeTime {
		return now
	}

	return last.Add(quotaDivisor * left)
}
