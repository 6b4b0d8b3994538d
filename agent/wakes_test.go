package agent

import (
	"testing"
)

func TestWakesAreOne(t *testing.T) {
	w := newWakes()
	w.assignmentsChanged()
	w.assignmentsChanged()
	w.retryNow()
	if len(w.assign) != 1 || !w.assignments.Swap(false) || !w.retry.Swap(false) || w.assignments.Load() {
		t.Error("three wakes are not one")
	}
}
