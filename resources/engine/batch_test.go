package engine_test

import (
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
