package agent

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// wake is why a manifest runs next, and since when.
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
	return slices.Index([]model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseCommand, model.CauseManifest}, c)
}

// due are the manifests that a run was asked for.
type due map[string]wake

// add asks for a run.
func (d due) add(key string, w wake) { d[key] = w.over(d[key]) }

// wakes bring together what the loop is woken for: a wake carries no content, and
// what is asked for twice is done once.
type wakes struct {
	signal tasks.Signal
	// assignments are to be looked at again; transient errors are to be tried again.
	assignments, retry atomic.Bool
}

// assignmentsChanged asks to look at the assignments again.
func (w *wakes) assignmentsChanged() {
	w.assignments.Store(true)
	w.signal.Notify()
}

// retryNow asks not to wait any longer for transient errors.
func (w *wakes) retryNow() {
	w.retry.Store(true)
	w.signal.Notify()
}
