package engine_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// TestReportsComeInTheOrderOfTheGraph checks the order of transactions for resources that change
// together.
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
			for _, n := range g.Nodes() {
				r := n.Resource
				want = append(want, r.Ref().String())
			}
			equal(t, w.order, want)
			if run.Counts.Total != len(lines) {
				t.Fatalf("%+v", run.Counts)
			}
		})
	}
}

// TestPartOfABatchThatFails checks that only failed changes of a batch are repeated alone.
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

// TestPartOfABatchThatTimedOut checks that a timed-out change is repeated only as often as retry
// allows.
func TestPartOfABatchThatTimedOut(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("daemons a value=1", "daemons b value=1 fail_at=timed-out", "daemons c value=1 fail_at=timed-out retry=1"))
	w.outcomes("daemons#a changed", "daemons#b failed", "daemons#c changed")
	got := slices.DeleteFunc(w.m.actions(), func(s string) bool { return strings.HasPrefix(s, "look") })
	equal(t, got, []string{"change 3 together", "set a", "set c"})
	equal(t, w.txs["daemons#b"].Errors, []string{"not this one: it had its time"})
}

// TestDurationsOfABatch checks that durations exclude the time of other resources of the batch that changed
// alone.
func TestDurationsOfABatch(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  map[string]time.Duration
	}{
		"all alone": {
			[]string{"many a value=1 fail_at=together timeout=1h", "many b value=1 fail_at=hang timeout=1h", "many c value=1 timeout=1h"},
			map[string]time.Duration{"many#a": 0, "many#b": time.Hour, "many#c": 0},
		},
		"some alone": {
			[]string{"wide a value=1 timeout=1h", "wide b value=1 fail_at=hang timeout=1h", "wide c value=1 timeout=1h fail_at=verify"},
			map[string]time.Duration{"wide#a": time.Hour, "wide#b": 2 * time.Hour, "wide#c": time.Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.run(w.graph(c.lines...))
				for ref, want := range c.want {
					if got := w.txs[ref].Duration; got != want {
						t.Errorf("%s took %s, not %s", ref, got, want)
					}
				}
			})
		})
	}
}

// TestUnrefreshed checks a change that is unrelated to the refresh: the refresh is dropped.
func TestUnrefreshed(t *testing.T) {
	for noop, want := range map[bool]string{false: "changed", true: "noop"} {
		w := newWorld(t)
		w.opts.Env.Scope.Noop = noop
		w.run(w.graph("thing x value=1", "svc a value=1 subscribe=thing#x fail_at=unrefreshed"))
		w.outcomes("thing#x "+want, "svc#a "+want)
		if tx := w.txs["svc#a"]; tx.Refreshed || !tx.Changed {
			t.Errorf("%+v", tx)
		}
	}
}

// TestTimeoutsOfABatch checks that a batch contains only resources with equal timeouts.
func TestTimeoutsOfABatch(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("many a value=1 timeout=1m", "many b value=1 timeout=1m", "many c value=1", "many d value=1 fail_at=hang timeout=10ms", "many e value=1"))
	w.outcomes("many#a changed", "many#b changed", "many#c changed", "many#d failed", "many#e changed")
	got := slices.DeleteFunc(w.m.actions(), func(s string) bool { return !strings.HasPrefix(s, "change") })
	equal(t, got, []string{"change 2 together"})
}

// TestLimitOfABatch checks that a batch respects the limit, and that the limit defers the other
// changes and all resources after them. Noop changes do not count.
func TestLimitOfABatch(t *testing.T) {
	w := newWorld(t)
	left, until := 2, time.Unix(1_000_000, 0)
	w.opts.Limit = func(r *resource.Resource) time.Time {
		if left == 0 {
			return until
		}
		left--
		return time.Time{}
	}
	run := w.run(w.graph("thing n value=1 noop=true", "many a value=1", "many b value=1", "many c value=1", "many s", "thing x value=1 require=many#c", "thing y value=1 require=thing#x"))
	w.outcomes("thing#n noop", "many#a changed", "many#b changed", "many#c notrun", "many#s stable", "thing#x notrun", "thing#y notrun")
	if !run.RetryAt.Equal(until) || run.Outcome() != model.OutcomeNotRun {
		t.Errorf("the run is %s and resumes at %s", run.Outcome(), run.RetryAt)
	}
}
