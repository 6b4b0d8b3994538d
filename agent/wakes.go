package agent

import (
	"maps"
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

// over joins two wakes of the same manifest: the weightiest cause, the first time.
func (w wake) over(other wake) wake {
	if weight(other.cause) > weight(w.cause) {
		w.cause = other.cause
	}
	if !other.at.IsZero() && other.at.Before(w.at) {
		w.at = other.at
	}

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

// due are the manifests that a run was asked for.
type due map[string]wake

// add asks for a run.
func (d due) add(key string, w wake) { d[key] = w.over(d[key]) }

// wakes bring together what the loop is woken for: a wake carries no content, and
// what is asked for twice is done once.
type wakes struct {
	signal tasks.Signal

	mu sync.Mutex
	woken
}

// woken is what was asked for since the last look.
type woken struct {
	// assignments are to be looked at again; transient errors are to be tried again.
	assignments, retry bool
	due                due
}

func newWakes() *wakes { return &wakes{signal: tasks.NewSignal(), woken: woken{due: due{}}} }

// assignmentsChanged asks to look at the assignments again.
func (w *wakes) assignmentsChanged() { w.update(func() { w.assignments = true }) }

// retryNow asks not to wait any longer for transient errors.
func (w *wakes) retryNow() { w.update(func() { w.retry = true }) }

// run asks for a run of a manifest.
func (w *wakes) run(key string, at wake) { w.update(func() { w.due.add(key, at) }) }

func (w *wakes) update(change func()) {
	w.mu.Lock()
	change()
	w.mu.Unlock()
	w.signal.Notify()
}

// take returns and clears what was asked for.
func (w *wakes) take() woken {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.woken
	out.due = maps.Clone(w.due)
	w.woken = woken{due: due{}}

	return out
}
