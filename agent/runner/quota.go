package runner

import "time"

// The limits of reports about rejected and delayed versions. A writer of one key can cause any number of
// them. The state of the node shows the newest of each key.
const (
	reportsOfAKey = 10
	reportsInAll  = 100
	reportsWithin = 10 * time.Minute
)

// quota counts the reports of one kind. The zero value is ready to use.
type quota struct {
	since time.Time
	keys  map[string]int
	all   int
	// leftOut counts the versions without a report since the last report.
	leftOut int
}

// takes reports whether a version of a key is reported, and how many before it were not.
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
