package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestReportsComeInTheOrderOfTheGraph, whatever came of resources that were
// changed together.
func TestReportsComeInTheOrderOfTheGraph(t *testing.T) {
	cases := map[string][]string{
		"parallel, one fails":        {"wide a value=1", "wide b value=1 fail_at=apply", "wide c value=1"},
		"parallel, one is stable":    {"wide a value=1", "wide b", "wide c value=1"},
		"parallel, the first fails":  {"wide a value=1 fail_at=apply", "wide b value=1", "wide c value=1"},
		"parallel, one is skipped":   {"wide a value=1", "wide b value=1 drift=ignore", "wide c value=1"},
		"together, one is unneeded":  {"many a value=1", "many b", "many c value=1"},
		"together, one is not right": {"many a value=1", "many b value=1 fail_at=verify", "many c value=1"},
		"others between":             {"wide a value=1", "thing b value=1", "wide c value=1", "wide d", "wide e value=1", "thing f"},
	}
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Cause = model.CauseSchedule
			g := w.graph(lines...)
			run := w.run(g)
			var want []string
			for _, r := range g.Resources() {
				want = append(want, r.Ref().String())
			}
			equal(t, w.order, want)
			if run.Counts.Total != len(lines) {
				t.Fatalf("%+v", run.Counts)
			}
		})
	}
}

// TestPartOfABatchThatFails is done again alone, and nothing else is.
func TestPartOfABatchThatFails(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.m.set(name, "1")
	}
	w.run(w.graph("thing x value=1", "daemons a value=1 subscribe=thing#x", "daemons b value=1 subscribe=thing#x fail_at=partly", "daemons c value=1 subscribe=thing#x"))
	w.outcomes("thing#x changed", "daemons#a refreshed", "daemons#b refreshed", "daemons#c refreshed")
	got := slices.DeleteFunc(w.m.actions(), func(s string) bool { return strings.HasPrefix(s, "look") })
	equal(t, got, []string{"set x", "change 3 together", "refresh a", "refresh c", "refresh b"})
}

// TestTimeoutsOfABatch are one: each resource has the time that it was given.
func TestTimeoutsOfABatch(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("many a value=1 timeout=1m", "many b value=1 timeout=1m", "many c value=1", "many d value=1 fail_at=hang timeout=10ms", "many e value=1"))
	w.outcomes("many#a changed", "many#b changed", "many#c changed", "many#d failed", "many#e changed")
	got := slices.DeleteFunc(w.m.actions(), func(s string) bool { return !strings.HasPrefix(s, "change") })
	equal(t, got, []string{"change 2 together"})
}
