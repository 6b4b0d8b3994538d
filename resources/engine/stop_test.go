package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestStopBreaksOffWhatChangesNothing checks that stopping interrupts observations and guards, and
// that their resources count as not run.
func TestStopBreaksOffWhatChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		noop  bool
		want  []string
	}{
		"the look at all":           {[]string{"thing a value=1", "thing b value=1 fail_at=hang-look"}, false, []string{"thing#a notrun", "thing#b notrun"}},
		"the look at all, in noop":  {[]string{"thing a value=1", "thing b value=1 fail_at=hang-look"}, true, []string{"thing#a notrun", "thing#b notrun"}},
		"a look after a change":     {[]string{"svc a value=1 makes=slow", "many b value=1 fail_at=hang-look guard=slow", "many c value=1"}, false, []string{"svc#a changed", "many#b notrun", "many#c notrun"}},
		"a guard":                   {[]string{"thing a value=1", "guarded b value=1 guard=a fail_at=hang-guard retry=9", "thing c value=1"}, false, []string{"thing#a changed", "guarded#b notrun", "thing#c notrun"}},
		"a guard, in noop":          {[]string{"thing a value=1", "guarded b value=1 guard=a fail_at=hang-guard", "thing c value=1"}, true, []string{"thing#a noop", "guarded#b notrun", "thing#c notrun"}},
		"a guard of a noop one":     {[]string{"guarded b value=1 guard=a fail_at=hang-guard noop=true"}, false, []string{"guarded#b notrun"}},
		"a guard after what it was": {[]string{"thing a value=1", "guarded b value=1 guard=a fail_at=hang-guard require=thing#a"}, true, []string{"thing#a noop", "guarded#b notrun"}},
	} {
		for _, kill := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.opts.Env.Scope.Noop = c.noop
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := func() { cancel(errors.New("killed")) }
				if !kill {
					stop = w.stoppable()
				}
				w.hook = func(event, _ string) {
					if event == "hang" {
						stop()
					}
				}
				run := w.runCtx(ctx, w.graph(c.lines...))
				w.outcomes(c.want...)
				if run.Counts.Failed > 0 || len(run.Errors) > 0 {
					t.Errorf("%+v", run)
				}
			})
		}
	}
}

// TestNothingIsChangedAfterTheRunIsBrokenOff checks that a stopped run makes no change, also if it
// stops directly before the change.
func TestNothingIsChangedAfterTheRunIsBrokenOff(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w.hook = func(event, _ string) {
		if event == "guard" {
			cancel(errors.New("killed"))
		}
	}
	w.m.set("open", "1")
	w.runCtx(ctx, w.graph("guarded a value=1 guard=open", "thing b value=1"))
	w.outcomes("guarded#a notrun", "thing#b notrun")
	contains(t, w.txs["guarded#a"].SkipReason, "stopped: killed")
}

// TestInterruptedChangeHasNoState interrupts a change so that the state after it cannot be
// read: the resource fails with the cause of the interrupt, and has no outputs.
func TestInterruptedChangeHasNoState(t *testing.T) {
	for name, line := range map[string]string{
		"the change":               "guarded a value=1 fail_at=hang",
		"the change, with retries": "guarded a value=1 fail_at=hang retry=2",
		"the change of a secret":   "guarded a value=1 fail_at=hang sensitive=true",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Outputs = true
			ctx, cancel := context.WithCancelCause(t.Context())
			w.hook = func(event, _ string) {
				if event == "apply" {
					cancel(errors.New("killed"))
				}
			}
			run := w.runCtx(ctx, w.graph(line, "thing b value=1"))
			w.outcomes("guarded#a failed", "thing#b notrun")
			contains(t, strings.Join(w.txs["guarded#a"].Errors, "; "), "killed")
			if got := w.txs["guarded#a"].Outputs; got != nil || run.Counts.Failed != 1 {
				t.Errorf("outputs %v, %+v", got, run.Counts)
			}
		})
	}
}
