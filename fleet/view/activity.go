package view

import (
	"sync"
	"time"
)

// Options are what a Log is made for.
type activityOptions struct {
	// Keep is for how long it keeps what happened.
	Keep time.Duration
	// Events and Runs are how many it keeps at most. No node takes more than a hundredth of it while others need the room.
	Events, Runs int
	// IsKnown reports whether there is a node: its last few events and runs stay. It must not call back.
	IsKnown func(node string) bool
	// Changed is called when something changed that readers see. It must not call back.
	Changed func()
}

// Log is what happened. Its methods may be called from several goroutines.
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

// Invalid counts messages that cannot be read, and has why the last one cannot.
type invalidMessages struct {
	Count int
	Last  string
}

// New returns a log of which nothing is known.
func newActivityLog(o activityOptions) *activityLog {
	l := &activityLog{
		options: o, words: newEventWords(), repeats: newRepeats(), events: newBounded[happened](o.Events), runs: newRuns(o.Runs), requests: newRequests(),
		points: newPoints(o.Keep), counts: counts{reports: map[ReportCount]uint64{}}, attention: newAttentionCounts(o.Keep), followers: newFollowers(),
	}
	l.events.isKnown, l.runs.isKnown = o.IsKnown, o.IsKnown

	return l
}

// Invalid returns which messages cannot be read.
func (l *activityLog) Invalid() invalidMessages {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.invalid
}

// Forget gives up what is kept for nodes that are not known any more.
func (l *activityLog) Forget(nodes ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range nodes {
		l.events.forget(name)
		l.runs.forget(name)
	}
}

// OfNode returns the newest runs and events of a node, the newest first.
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

// Points returns what happened from a time on until now, by time, oldest first.
func (l *activityLog) Points(since, now time.Time) []Point {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.points.get(since, now)
}

// Top returns what needed attention most, of one manifest, or of all for an empty name; current are the failures of now.
func (l *activityLog) Top(manifest string, current []Failure, now time.Time) Top {
	l.mu.RLock()
	defer l.mu.RUnlock()

	return l.attention.Top(manifest, current, now)
}
