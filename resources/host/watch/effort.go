package watch

import "time"

const (
	// effortShare is the part of the time that an effort may take, as its inverse.
	effortShare = 20
	// freeEffort is how much it may take before anything has to wait.
	freeEffort = 20 * time.Millisecond
)

// effort is the time that work of a kind has taken lately, all of it together: routes that
// are resolved again, trees that are scanned again. Whoever owns a directory can cause that
// all the time.
type effort struct {
	spent time.Duration
	// at is when that was spent.
	at time.Time
}

// left is what still counts of what was spent.
func (e *effort) left(now time.Time) time.Duration {
	return max(0, e.spent-max(0, now.Sub(e.at))/effortShare)
}

// add notes that work took some time until now.
func (e *effort) add(took time.Duration, now time.Time) {
	e.spent, e.at = e.left(now)+took, now
}

// due returns when what was done last at a time may be done again: the more time all
// have taken, the later.
func (e *effort) due(last, now time.Time) time.Time {
	left := e.left(now)
	if left <= freeEffort {
		return now
	}

	return last.Add(effortShare * left)
}
