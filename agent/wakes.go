package agent

import (
	"sync/atomic"

	"github.com/musterfleet/muster/agent/tasks"
)

// wakes holds the signals to the goroutines of the loop. A signal carries no data, and several of
// them before the goroutine looks count as one.
type wakes struct {
	// signal wakes run, assign wakes the reading of assignments.
	signal, assign tasks.Signal
	// assignments is set when the assignments may have changed, retry when transient errors are
	// due at once.
	assignments, retry atomic.Bool
}

func newWakes() *wakes { return &wakes{signal: tasks.NewSignal(), assign: tasks.NewSignal()} }

// assignmentsChanged asks to read the assignments again.
func (w *wakes) assignmentsChanged() {
	w.assignments.Store(true)
	w.assign.Notify()
}

// retryNow asks to retry transient errors at once.
func (w *wakes) retryNow() {
	w.retry.Store(true)
	w.assignmentsChanged()
}
