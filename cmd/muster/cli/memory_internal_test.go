package cli

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
		percent := debug.SetGCPercent(ManifestHeap * 25)
		debug.SetGCPercent(percent)
		return percent
	}

	debug.SetGCPercent(50)
	CollectLater(ManifestHeap)
	if got := set(); got != 50 {
		t.Errorf("the percentage of the user became %d", got)
	}
	debug.SetGCPercent(100)
	CollectLater(ManifestHeap)
	if got := set(); got != ManifestHeap*25 {
		t.Errorf("the first collection is at %d percent", got)
	}
	for end := time.Now().Add(time.Minute); set() != 100; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("collections are still at %d percent", set())
		}
	}
}
