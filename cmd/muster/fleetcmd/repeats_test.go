package fleetcmd

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestRepeats(t *testing.T) {
	var r Repeats
	first, again, other := model.Report{Node: "a", ID: "1"}, model.Report{Node: "a", ID: "1"}, model.Report{Node: "b", ID: "1"}
	if r.SeenBefore(first) || !r.SeenBefore(again) || r.SeenBefore(other) || !r.SeenBefore(other) {
		t.Error("a report is told wrongly from its repetition")
	}
	// Ids too old to be repeated are forgotten.
	for i := range 100_001 {
		r.SeenBefore(model.Report{Node: "c", ID: fmt.Sprint(i)})
	}
	if r.SeenBefore(first) || !r.SeenBefore(model.Report{Node: "c", ID: "100000"}) {
		t.Error("it does not forget, or forgets the newest")
	}
}

// A node chooses the ids of its reports, which may be as long as a report.
func TestLongIDsFillNoMemory(t *testing.T) {
	var r Repeats
	before := inUse()
	for i := range 1000 {
		r.SeenBefore(model.Report{Node: "evil", ID: fmt.Sprint(i) + strings.Repeat("x", 60_000)})
	}
	if grown := inUse() - before; grown > 8<<20 {
		t.Errorf("1000 reports take %d MiB", grown>>20)
	}
	if !r.SeenBefore(model.Report{Node: "evil", ID: "0" + strings.Repeat("x", 60_000)}) {
		t.Error("it forgets them")
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc)
}
