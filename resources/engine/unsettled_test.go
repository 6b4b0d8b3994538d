package engine_test

import (
	"slices"
	"testing"
)

// TestUnsettled checks that a resource in a transitional state is observed again, alone.
func TestUnsettled(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("many a value=1", "many b value=1 fail_at=unsettled require=many#a", "many c value=1 fail_at=unsettled require=thing#x", "thing x value=1 fail_at=apply"))
	w.outcomes("many#a changed", "many#b changed", "thing#x failed", "many#c unmet")
	if did := w.m.actions(); !slices.Contains(did, "look at 3") || !slices.Contains(did, "set b") {
		t.Errorf("it did %q", did)
	}
}
