package agent

import (
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// wake is why a manifest is to be run, and since when.
type wake struct {
	cause model.Cause
	at    time.Time
}

// queue is what is to be done, brought together: whoever asks leaves no content
// in it, and what is asked for twice is done once.
type queue struct {
	slot tasks.Signal

	mu          sync.Mutex
	assignments bool
	retry       bool
	due         map[string]wake
	rounds      []*round
}

func newQueue() *queue { return &queue{slot: tasks.NewSignal(), due: map[string]wake{}} }

// assignmentsChanged asks to look at the assignments again.
func (q *queue) assignmentsChanged() {
	q.mu.Lock()
	q.assignments = true
	q.mu.Unlock()
	q.slot.Notify()
}

// retryNow asks not to wait any longer for what may pass.
func (q *queue) retryNow() {
	q.mu.Lock()
	q.retry = true
	q.mu.Unlock()
	q.slot.Notify()
}

// run asks for a run of a manifest. Of several causes the weightiest is kept,
// of several times the first.
func (q *queue) run(key string, w wake) {
	q.mu.Lock()
	q.due[key] = w.over(q.due[key])
	q.mu.Unlock()
	q.slot.Notify()
}

// ended hands over a round of health checks that is at its end.
func (q *queue) ended(b *round) {
	q.mu.Lock()
	q.rounds = append(q.rounds, b)
	q.mu.Unlock()
	q.slot.Notify()
}

// wakes are what was asked for since the last look.
type wakes struct {
	assignments, retry bool
	due                map[string]wake
	rounds             []*round
}

// take empties the queue.
func (q *queue) take() wakes {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := wakes{q.assignments, q.retry, q.due, q.rounds}
	q.assignments, q.retry, q.due, q.rounds = false, false, map[string]wake{}, nil

	return w
}

// weight orders causes: a change that somebody asked for is one whatever else
// woke the node meanwhile.
func weight(c model.Cause) int {
	switch c {
	case model.CauseManifest:
		return 5
	case model.CauseCommand:
		return 4
	case model.CauseHealth:
		return 3
	case model.CauseDrift:
		return 2
	case model.CauseSchedule:
		return 1
	default:
		return 0
	}
}

// over joins two wakes of the same manifest.
func (w wake) over(other wake) wake {
	if weight(other.cause) > weight(w.cause) {
		w.cause = other.cause
	}
	if !other.at.IsZero() && other.at.Before(w.at) {
		w.at = other.at
	}

	return w
}
