package agent

import (
	"testing"

	"github.com/musterfleet/muster/agent/tasks"
)

func TestWakesAreOne(t *testing.T) {
	w := &wakes{signal: tasks.NewSignal()}
	w.assignmentsChanged()
	w.assignmentsChanged()
	w.retryNow()
	if len(w.signal) != 1 || !w.assignments.Swap(false) || !w.retry.Swap(false) || w.assignments.Load() {
		t.Error("three wakes are not one")
	}
}
