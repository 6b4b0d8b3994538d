package agent

import (
	"sync/atomic"

	"github.com/musterfleet/muster/agent/tasks"
)

// wakes bring together what the loop is woken for: a wake carries no content, and
// what is asked for twice is done once.
type wakes struct {
	signal tasks.Signal
	// assignments reports that they may have changed, retry that transient errors are
	// due at once.
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
