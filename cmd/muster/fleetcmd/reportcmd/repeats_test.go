package reportcmd

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestRepeats(t *testing.T) {
	var r repeats
	first, again, other := model.Report{Node: "a", ID: "1"}, model.Report{Node: "a", ID: "1"}, model.Report{Node: "b", ID: "1"}
	if r.seenBefore(first) || !r.seenBefore(again) || r.seenBefore(other) || !r.seenBefore(other) {
		t.Error("a report is told wrongly from its repetition")
	}
	// What was so long ago that it cannot come again is forgotten.
	for i := range 100_001 {
		r.seenBefore(model.Report{Node: "c", ID: fmt.Sprint(i)})
	}
	if r.seenBefore(first) || !r.seenBefore(model.Report{Node: "c", ID: "100000"}) {
		t.Error("it does not forget, or forgets the newest")
	}
}
