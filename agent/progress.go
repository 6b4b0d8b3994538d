package agent

import (
	"sync/atomic"
)

// progress counts the steps of the loop for the watchdog.
type progress struct {
	steps atomic.Uint64
	// seen is the number of steps at the last check.
	seen uint64
}

// Started is closed when the loop runs.
func (a *Agent) Started() <-chan struct{} { return a.loop.started }

// Changed is notified, for one goroutine, when the result of Describe changes. Runs in progress, unpublished
// reports and times do not count.
func (a *Agent) Changed() <-chan struct{} { return a.status.Shown }

// Alive reports whether the loop made a step since the last call or a run is in progress, which may take any
// time. It wakes the loop for the next call. One goroutine calls it at intervals.
func (a *Agent) Alive() bool {
	steps := a.loop.progress.steps.Load()
	moved := steps != a.loop.progress.seen
	a.loop.progress.seen = steps
	a.loop.wakes.signal.Notify()

	return moved || a.runs.Any()
}
