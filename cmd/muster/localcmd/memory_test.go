package localcmd

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollectLater has the usual collection back after the first one, and leaves
// what the user has set.
func TestCollectLater(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	set := func() int {
		percent := debug.SetGCPercent(firstCollection)
		debug.SetGCPercent(percent)
		return percent
	}

	debug.SetGCPercent(50)
	collectLater()
	if got := set(); got != 50 {
		t.Errorf("the percentage of the user became %d", got)
	}
	debug.SetGCPercent(100)
	collectLater()
	if got := set(); got != firstCollection {
		t.Errorf("the first collection is at %d percent", got)
	}
	for end := time.Now().Add(time.Minute); set() != 100; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("collections are still at %d percent", set())
		}
	}
}
