package view_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/view"
)

func TestRepeats(t *testing.T) {
	r := view.NewRepeats()
	if r.SeenBefore("a", "1") || !r.SeenBefore("a", "1") || r.SeenBefore("b", "1") || !r.SeenBefore("b", "1") {
		t.Error("a report is told wrongly from its repetition")
	}
	// Ids too old to be repeated are forgotten.
	for i := range 200_001 {
		r.SeenBefore("c", fmt.Sprint(i))
	}
	if r.SeenBefore("a", "1") || !r.SeenBefore("c", "200000") {
		t.Error("it does not forget, or forgets the newest")
	}
}

// A node chooses the ids of its reports, which may be as long as a report.
func TestLongIDsFillNoMemory(t *testing.T) {
	r := view.NewRepeats()
	before := inUse()
	for i := range 1000 {
		r.SeenBefore("evil", fmt.Sprint(i)+strings.Repeat("x", 60_000))
	}
	if grown := inUse() - before; grown > 8<<20 {
		t.Errorf("1000 reports take %d MiB", grown>>20)
	}
	if !r.SeenBefore("evil", "0"+strings.Repeat("x", 60_000)) {
		t.Error("it forgets them")
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc)
}
