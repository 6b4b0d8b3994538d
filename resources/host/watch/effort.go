package watch

import "time"

const (
	// walkShare is the part of the time that resolving routes again may take, all of them
	// together, as its inverse.
	walkShare = 20
	// freeWalks is how much they may take before any of them has to wait, and at a time.
	freeWalks = 20 * time.Millisecond
)

// effort is the time that walks have taken lately: whoever owns a directory can have many
// routes resolved again, all the time.
type effort struct {
	spent time.Duration
	// at is when that was spent.
	at time.Time
}

// left is what still counts of what was spent.
func (e *effort) left(now time.Time) time.Duration {
	return max(0, e.spent-max(0, now.Sub(e.at))/walkShare)
}

// add notes that a walk took some time until now.
func (e *effort) add(took time.Duration, now time.Time) {
	e.spent, e.at = e.left(now)+took, now
}

// due returns when a route may be resolved again that was resolved last at a time: the
// more time all have taken, the later.
func (e *effort) due(last, now time.Time) time.Time {
	left := e.left(now)
	if left <= freeWalks {
		return now
	}

	return last.Add(walkShare * left)
}
