package manifests

import "time"

// Of what is rejected, at most this many versions are reported within a while: whoever may put
// one key can have any number rejected. The state of the node has the newest of each key.
const (
	rejectedOfAKey = 10
	rejectedInAll  = 100
	rejectedWithin = 10 * time.Minute
)

// quota counts the rejections that are reported. The zero value is ready to use.
type quota struct {
	since time.Time
	keys  map[string]int
	all   int
	// leftOut counts those that were not reported since one was.
	leftOut int
}

// takes reports whether one more of a key is reported, and how many were not before it.
func (q *quota) takes(key string, now time.Time) (leftOut int, ok bool) {
	if now.Sub(q.since) >= rejectedWithin {
		q.since, q.keys, q.all = now, map[string]int{}, 0
	}
	if q.keys[key] >= rejectedOfAKey || q.all >= rejectedInAll {
		q.leftOut++
		return 0, false
	}
	q.keys[key]++
	q.all++
	leftOut, q.leftOut = q.leftOut, 0

	return leftOut, true
}
