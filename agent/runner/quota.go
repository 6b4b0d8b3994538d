package runner

import "time"

// Of what is rejected, or not ready, at most this many versions are reported within a while: whoever
// may put one key can cause any number. The state of the node has the newest of each key.
const (
	reportsOfAKey = 10
	reportsInAll  = 100
	reportsWithin = 10 * time.Minute
)

// quota counts what is reported of one kind. The zero value is ready to use.
type quota struct {
	since time.Time
	keys  map[string]int
	all   int
	// leftOut counts those that were not reported since one was.
	leftOut int
}

// takes reports whether one more of a key is reported, and how many were not before it.
func (q *quota) takes(key string, now time.Time) (leftOut int, ok bool) {
	if now.Sub(q.since) >= reportsWithin {
		q.since, q.keys, q.all = now, map[string]int{}, 0
	}
	if q.keys[key] >= reportsOfAKey || q.all >= reportsInAll {
		q.leftOut++
		return 0, false
	}
	q.keys[key]++
	q.all++
	leftOut, q.leftOut = q.leftOut, 0

	return leftOut, true
}
