package agent

import (
	"sync/atomic"
)

// progress counts what the loop does, for whoever watches that it goes on.
type progress struct {
	steps atomic.Uint64
	// seen are the steps at the last look.
	seen uint64
}

// Started is closed when the loop runs.
func (a *Agent) Started() <-chan struct{} { return a.loop.started }

// Changed is notified, for one goroutine, when what Describe returns is something else;
// runs in progress, unpublished reports and times do not count.
func (a *Agent) Changed() <-chan struct{} { return a.status.Shown }

// Alive reports whether the loop did anything since the last call, or has a run in hand,
// which may take as long as it likes. It wakes the loop for the next call. One goroutine
// calls it, from time to time.
func (a *Agent) Alive() bool {
	steps := a.loop.progress.steps.Load()
	moved := steps != a.loop.progress.seen
	a.loop.progress.seen = steps
	a.loop.wakes.signal.Notify()

	return moved || a.runs.Any()
}
