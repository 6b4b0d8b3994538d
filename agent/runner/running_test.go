package runner_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/agent/tasks"
)

// TestAfter: functions run after the lock is released, once and in order, and may take the lock.
func TestAfter(t *testing.T) {
	t.Parallel()
	r := runner.NewRunning(tasks.NewSignal())
	var calls []string
	r.Do(func() {
		for _, name := range []string{"one", "two"} {
			r.After(func() { r.Do(func() { calls = append(calls, name) }) })
		}
		calls = append(calls, "locked")
	})
	r.Do(func() { calls = append(calls, "again") })
	if want := []string{"locked", "one", "two", "again"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
}

// TestAfterAPanic: a panic releases the lock and does not lose the functions.
func TestAfterAPanic(t *testing.T) {
	t.Parallel()
	r := runner.NewRunning(tasks.NewSignal())
	called := false
	func() {
		defer func() { _ = recover() }()
		r.Do(func() {
			r.After(func() { called = true })
			panic("no")
		})
	}()
	r.Do(func() {})
	if !called {
		t.Error("the function was not called")
	}
}

// TestARunBeginsAfterTheFunctions: a run does not overtake the report of its cause.
func TestARunBeginsAfterTheFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runner.NewRunning(tasks.NewSignal())
		var calls []string
		r.Do(func() {
			r.After(func() {
				synctest.Wait() // until everything else waits
				calls = append(calls, "report")
			})
			r.Begin(runner.Manifest, "group.all.motd", nil, func(*runner.Lane) { calls = append(calls, "run") })
		})
		r.Wait()
		if want := []string{"report", "run"}; !slices.Equal(calls, want) {
			t.Errorf("called %q, want %q", calls, want)
		}
	})
}
