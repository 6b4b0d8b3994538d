package host

import (
	"slices"
	"testing"
)

// TestExpectedUnits follows the record of runs that change unit files at the same time.
func TestExpectedUnits(t *testing.T) {
	dir := t.TempDir()
	agent := New(Options{StateDir: dir})
	expect := func(h *Host, run string) {
		t.Helper()
		if err := h.ExpectUnitChange(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	// finish ends a run and forgets it, as ReloadUnits does.
	finish := func(h *Host, run string, parents ...string) {
		t.Helper()
		h.expected.end(run)
		if err := h.expected.forget(t.Context(), h, h.expected.killed(h, parents)); err != nil {
			t.Fatal(err)
		}
	}
	// killed returns what a new process would find.
	killed := func(parents ...string) []string {
		h := New(Options{StateDir: dir})
		return h.expected.killed(h, parents)
	}
	is := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}

	is("without a record", killed())
	expect(agent, "a")
	expect(agent, "b")
	expect(agent, "b")
	is("active runs of another process", killed(), "a", "b")
	is("active runs of this process", agent.expected.killed(agent, nil))
	finish(agent, "a")
	is("after the end of one", killed(), "b")

	// A command of the run b starts a muster.
	nested := New(Options{StateDir: dir})
	is("within the run", nested.expected.killed(nested, []string{"b"}))
	expect(nested, "c")
	finish(nested, "c", "b")
	is("after the run within it", killed(), "b")
	finish(agent, "b")
	is("after all runs", killed())
	if _, found, err := Recall[[]string](agent, unitRecords, pendingUnits); found || err != nil {
		t.Errorf("there still is a record: %v", err)
	}

	expect(agent, "d")
	next := New(Options{StateDir: dir})
	expect(next, "e")
	is("after a kill", next.expected.killed(next, nil), "d")
	finish(next, "e")
	is("after the next run", killed())

	if err := agent.Remember(t.Context(), unitRecords, pendingUnits, true); err != nil {
		t.Fatal(err)
	}
	is("the record of an earlier version", killed(), "")
	finish(next, "f")
	is("after the next run", killed())
}
