package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// TestAtEnd checks that deferred changes run after all resources, without pending refreshes, and
// are reported then.
func TestAtEnd(t *testing.T) {
	w := newWorld(t)
	w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
	w.m.set("s", "x")
	w.hook = func(event, _ string) {
		if owed, err := w.opts.Journal.Pending(); event == "end" && (err != nil || len(owed) > 0) {
			t.Errorf("%v, owed %v", err, owed)
		}
	}
	run := w.run(w.graph("thing a value=1", "svc s value=x fail_at=end subscribe=thing#a", "thing b value=1"))
	w.outcomes("thing#a changed", "thing#b changed", "svc#s refreshed")
	if did := w.m.actions(); !slices.Equal(did, []string{"set a", "refresh s", "set b", "end s"}) || run.Outcome() != model.OutcomeChanged {
		t.Errorf("it did %q, the run is %s", did, run.Outcome())
	}
	w.run(w.graph("thing a value=1", "svc s value=x fail_at=end subscribe=thing#a"))
	if did := w.m.actions(); len(did) > 0 {
		t.Errorf("the next run did %q", did)
	}
}

// TestAtEndFails checks that a failure fails the run, but not the following changes.
func TestAtEndFails(t *testing.T) {
	w := newWorld(t)
	run := w.run(w.graph("thing a value=1 fail_at=end-fails", "thing b value=1 fail_at=end"))
	if did := w.m.actions(); !slices.Equal(did, []string{"set a", "set b", "end a", "end b"}) {
		t.Errorf("it did %q", did)
	}
	if run.Outcome() != model.OutcomeFailed || len(run.Errors) != 1 || !strings.Contains(run.Errors[0], "end-fails failed") {
		t.Errorf("the run is %s: %q", run.Outcome(), run.Errors)
	}
}

// TestAtEndOfAStoppedRun checks that a stopped run makes no deferred changes.
func TestAtEndOfAStoppedRun(t *testing.T) {
	w := newWorld(t)
	stop := w.stoppable()
	w.hook = func(event, name string) {
		if event == "apply" && name == "a" {
			stop()
		}
	}
	w.run(w.graph("thing a value=1 fail_at=end", "thing b value=1"))
	w.outcomes("thing#b notrun", "thing#a changed")
	if did := w.m.actions(); !slices.Equal(did, []string{"set a"}) {
		t.Errorf("it did %q", did)
	}
}

// TestAtEndEndsTheRun checks that a deferred change that ends the run is not interrupted, and that
// the next one is skipped.
func TestAtEndEndsTheRun(t *testing.T) {
	w := newWorld(t)
	stop := w.stoppable()
	w.hook = func(event, _ string) {
		if event == "end" {
			stop()
		}
	}
	run := w.run(w.graph("thing a value=1 fail_at=end", "thing b value=1 fail_at=end"))
	if did := w.m.actions(); !slices.Equal(did, []string{"set a", "set b", "end a"}) || len(run.Errors) > 0 {
		t.Errorf("it did %q: %q", did, run.Errors)
	}
}

// TestAtEndIsRefused checks a failed deferred change: it fails its resource, and its refresh stays
// pending until a later run, also the run of a part, succeeds.
func TestAtEndIsRefused(t *testing.T) {
	for name, again := range map[string]func(w *world, g *plan.Graph) *plan.Graph{
		"the next run":  func(_ *world, g *plan.Graph) *plan.Graph { return g },
		"the next part": func(w *world, g *plan.Graph) *plan.Graph { return w.part(g, "svc#s") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
			w.m.set("s", "x")
			g := w.graph("thing a value=1", "svc s value=x fail_at=end-fails times=2 subscribe=thing#a", "thing b value=1")
			w.opts.Cause = model.CauseDrift
			run := w.run(g)
			w.outcomes("thing#a changed", "thing#b changed", "svc#s failed")
			if s := w.txs["svc#s"]; run.Counts.Failed != 1 || run.Counts.Refreshed != 0 || len(run.Errors) != 1 || !slices.Equal(s.Errors, []string{"end-fails failed with x"}) || s.Changes[0].Message != "Would have refreshed s" {
				t.Errorf("the run counts %+v with %q, the service is %+v", run.Counts, run.Errors, s)
			}
			if run.Drift.Detected != 3 || run.Drift.Repaired != 2 || w.txs["svc#s"].Repaired() {
				t.Errorf("drift is counted as %+v", run.Drift)
			}
			for i, want := range []string{"svc#s failed", "svc#s refreshed"} {
				if pending, err := w.opts.Journal.Pending(); err != nil || !slices.Equal(pending, references("svc#s")) {
					t.Errorf("run %d: %v, pending %v", i+1, err, pending)
				}
				again := again(w, g)
				w.opts.Prior = plan.HistoryForPartial(again, func(model.Ref) bool { return false })
				w.m.actions()
				w.run(again)
				if got := "svc#s " + string(w.txs["svc#s"].Outcome()); got != want || !slices.Equal(w.m.actions(), []string{"refresh s", "end s"}) {
					t.Errorf("run %d: %s, want %s", i+2, got, want)
				}
			}
			if pending, err := w.opts.Journal.Pending(); err != nil || len(pending) > 0 {
				t.Errorf("%v, pending %v", err, pending)
			}
		})
	}
}
