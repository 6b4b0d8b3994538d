package engine_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// registering makes every resource of a graph register itself, and records the registrations.
func (w *world) registering(g *plan.Graph) *[]string {
	for _, n := range g.Nodes() {
		r := n.Resource
		r.Meta().RegisterWhenStable = []model.RegisterEntry{{Service: r.Meta().Name}}
	}
	told := &[]string{}
	w.opts.Register = func(ref model.Ref, entries []model.RegisterEntry) {
		*told = append(*told, fmt.Sprintf("%s %d", ref, len(entries)))
	}

	return told
}

// TestWhatRegisters checks that stable and changed resources without a critical check register.
func TestWhatRegisters(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker = &clinic{}
	g := w.checked("thing a value=1 | ok,warning", "thing b value=1 | critical", "thing c value=1 require=thing#b", "thing d value=1 fail_at=apply", "thing e value=1 noop=true", "many f value=1")
	told := w.registering(g)
	w.run(g)
	equal(t, *told, []string{"thing#a 1", "thing#b 0", "thing#c 0", "thing#d 0", "many#f 1"})
	*told = nil
	w.run(g)
	equal(t, *told, []string{"thing#a 1", "thing#b 0", "thing#c 0", "thing#d 0", "many#f 1"})
}

// TestWhatIsChangedAtTheEndRegistersThen checks that a resource registers only after its deferred
// change.
func TestWhatIsChangedAtTheEndRegistersThen(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1 fail_at=end", "thing b value=1 fail_at=end-fails", "thing c value=1")
	told := w.registering(g)
	w.run(g)
	equal(t, *told, []string{"thing#c 1", "thing#a 1", "thing#b 0"})
}

// TestNothingRegistersWithoutARun checks noop and runs of checks only (spec/README.md,
// health-check-only).
func TestNothingRegistersWithoutARun(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker = &clinic{}
	g := w.checked("thing a value=1 | ok", "thing b value=1 | critical")
	told := w.registering(g)
	w.opts.Env.Scope.Noop = true
	w.run(g)
	equal(t, *told, nil)
	w.opts.Env.Scope.Noop, w.opts.Env.Scope.HealthCheckOnly = false, true
	w.run(g)
	equal(t, *told, []string{"thing#b 0"})
}

func TestDriftThatIsNotLookedAtLeavesRegistrationsAlone(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1 drift=ignore", "thing b value=1 drift=report")
	told := w.registering(g)
	w.opts.Cause = model.CauseSchedule
	w.run(g)
	equal(t, *told, nil)
}

func TestWhatIsNotRunSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.opts.FailOnError = true
	g := w.graph("thing a value=1 fail_at=apply", "thing b value=1")
	told := w.registering(g)
	w.run(g)
	equal(t, *told, []string{"thing#a 0"})
}
