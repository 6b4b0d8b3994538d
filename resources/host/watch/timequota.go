package watch

import "time"

// freeTime is the time that work may take without waiting.
const freeTime = 20 * time.Millisecond

// quotaDivisor limits work to one part in quotaDivisor of the time.
const quotaDivisor = 20

// timeQuota limits the time that other users can cost the agent: it sums up the recent time of one
// kind of work. The zero value is ready to use. It is not safe for concurrent use.
type timeQuota struct {
	time time.Duration
	// at is the time of the last Add.
	at time.Time
}

// left returns the part of the sum that still counts at a time.
func (s *timeQuota) left(now time.Time) time.Duration {
	return max(0, s.time-max(0, now.Sub(s.at))/quotaDivisor)
}

// Add adds the duration of work that ended now.
func (s *timeQuota) Add(took time.Duration, now time.Time) {
	s.time, s.at = s.left(now)+took, now
}

// Due returns when work that was last done at last may be done again. The more time all work has
// taken, the later it is due.
func (s *timeQuota) Due(last, now time.Time) time.Time {
	left := s.left(now)
	if left <= freeTime {
		return now
	}

	return last.Add(quotaDivisor * left)
}
