package view

import (
	"sync"
	"time"
)

// activityOptions configure a Log.
type activityOptions struct {
	// Keep is the retention time.
	Keep time.Duration
	// Events and Runs limit the retained events and runs. If others need the room, one node uses at most a
	// hundredth.
	Events, Runs int
	// IsKnown reports whether a node exists: its last few events and runs are retained. It must not call
	// back.
	IsKnown func(node string) bool
	// Changed is called after a change that readers see. It must not call back.
	Changed func()
}

// activityLog contains the events and runs of the fleet. It is safe for concurrent use.
type activityLog struct {
	options activityOptions

	mu        sync.RWMutex
	words     eventWords
	repeats   repeats
	events    *bounded[happened]
	runs      runs
	requests  requests
	points    points
	counts    counts
	attention *attentionCounts
	invalid   invalidMessages
	followers followers
}

// invalidMessages counts unreadable messages and contains the reason of the last one.
type invalidMessages struct {
	Count int
	Last  string
}

// newActivityLog returns an empty log.
func newActivityLog(o activityOptions) *activityLog {
	l := &activityLog{
		options: o, words: newEventWords(), repeats: newRepeats(), events: newBounded[happened](o.Events), runs: newRuns(o.Runs), requests: newRequests(),
		points: newPoints(o.Keep), counts: counts{reports: map[ReportCount]uint64{}}, attention: newAttentionCounts(o.Keep), followers: newFollowers(),
	}
	l.events.isKnown, l.runs.isKnown = o.IsKnown, o.IsKnown

	return l
}

// Invalid returns the unreadable messages.
func (l *activityLog) Invalid() invalidMessages {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.invalid
}

// Forget removes the data of unknown nodes.
func (l *activityLog) Forget(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range nodes {
		l.events.forget(name)
		l.runs.forget(name)
	}
}

// OfNode returns the newest runs and events of a node, newest first.
func (l *activityLog) OfNode(name string, mostRuns, mostEvents int) ([]RunRow, []Event) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	runs, events := []RunRow{}, []Event{}
	for _, it := range l.runs.of(name, mostRuns) {
		runs = append(runs, rowOf(it))
	}
	for _, it := range l.events.of(name, mostEvents) {
		events = append(events, eventOf(it))
	}

	return runs, events
}

// Points returns the counts of the intervals since a time, oldest first.
func (l *activityLog) Points(since, now time.Time) []Point {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.points.get(since, now)
}

// Top returns the resources that need attention most, of one manifest or, for an empty name, of all. current
// are the current failures.
func (l *activityLog) Top(manifest string, current []Failure, now time.Time) Top {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.attention.Top(manifest, current, now)
}
