package agent

import (
	"sync/atomic"

	"github.com/musterfleet/muster/agent/tasks"
)

// wakes contains the signals to the goroutines of the loop. A signal carries no data. Several signals count
// as one until the goroutine receives them.
type wakes struct {
	// signal wakes run, assign wakes the reading of assignments.
	signal, assign tasks.Signal
	// assignments means that the assignments may have changed, retry that transient errors are due now.
	assignments, retry atomic.Bool
}

func newWakes() *wakes { return &wakes{signal: tasks.NewSignal(), assign: tasks.NewSignal()} }

// assignmentsChanged requests another read of the assignments.
func (w *wakes) assignmentsChanged() {
	w.assignments.Store(true)
	w.assign.Notify()
}

// retryNow requests an immediate retry of transient errors.
func (w *wakes) retryNow() {
	w.retry.Store(true)
	w.assignmentsChanged()
}
