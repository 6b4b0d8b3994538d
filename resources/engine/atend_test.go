package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/journal"
)

// TestAtEnd has what is put off done after all resources, with no refresh pending any more.
func TestAtEnd(t *testing.T) {
	w := newWorld(t)
	w.opts.Journal = journal.NewFile(w.opts.Env.Host, t.TempDir(), "test.yaml")
	w.m.set("s", "x")
	w.hook = func(event, _ string) {
		if owed, err := w.opts.Journal.Pending(); event == "end" && (err != nil || len(owed) > 0) {
			t.Errorf("%v, owed %v", err, owed)
		}
	}
	run := w.run(w.graph("thing a value=1", "svc s value=x fail_at=end subscribe=thing#a", "thing b value=1"))
	w.outcomes("thing#a changed", "svc#s refreshed", "thing#b changed")
	if did := w.m.actions(); !slices.Equal(did, []string{"set a", "refresh s", "set b", "end s"}) || run.Outcome() != model.OutcomeChanged {
		t.Errorf("it did %q, the run is %s", did, run.Outcome())
	}
	w.run(w.graph("thing a value=1", "svc s value=x fail_at=end subscribe=thing#a"))
	if did := w.m.actions(); len(did) > 0 {
		t.Errorf("the next run did %q", did)
	}
}

// TestAtEndFails fails the run, and not what follows.
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

// TestAtEndOfAStoppedRun does nothing: muster ends without it.
func TestAtEndOfAStoppedRun(t *testing.T) {
	w := newWorld(t)
	stop := w.stoppable()
	w.hook = func(event, name string) {
		if event == "apply" && name == "a" {
			stop()
		}
	}
	w.run(w.graph("thing a value=1 fail_at=end", "thing b value=1"))
	w.outcomes("thing#a changed", "thing#b notrun")
	if did := w.m.actions(); !slices.Equal(did, []string{"set a"}) {
		t.Errorf("it did %q", did)
	}
}

// TestAtEndEndsTheRun: it is not broken off by what it leads to, and the next one is left out.
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
