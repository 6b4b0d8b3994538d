package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// clinic implements the checks of a test. The command of a check is its status.
type clinic struct {
	mu   sync.Mutex
	made []string
	env  []string
	// hold, if set, blocks checks until it is closed.
	hold chan struct{}
}

func (c *clinic) CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult {
	c.mu.Lock()
	c.env = env
	c.mu.Unlock()
	out := make([]model.HealthResult, len(checks))
	for i, check := range checks {
		status, said, _ := strings.Cut(check.Command, " ")
		if c.hold != nil {
			select {
			case <-c.hold:
			case <-ctx.Done():
				status, said = "unknown", context.Cause(ctx).Error()
			}
		}
		out[i] = model.HealthResult{Name: check.Name, Status: model.HealthStatus(status), Output: said, Tries: 1, Format: check.Format}
		c.mu.Lock()
		c.made = append(c.made, check.Name)
		c.mu.Unlock()
	}

	return out
}

// checked builds a graph of lines that end in "| check,check".
func (w *world) checked(lines ...string) *plan.Graph {
	w.t.Helper()
	g := w.graph(func() []string {
		var out []string
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " | ")
			out = append(out, line)
		}
		return out
	}()...)
	byName := map[string][]model.HealthCheck{}
	for _, line := range lines {
		what, checks, has := strings.Cut(line, " | ")
		for i, command := range strings.Split(checks, ",") {
			if has {
				name := strings.Fields(what)[1]
				byName[name] = append(byName[name], model.HealthCheck{Name: fmt.Sprintf("%s%d", name, i), Command: command, Format: model.HealthNagios})
			}
		}
	}
	for _, n := range g.Nodes() {
		r := n.Resource
		r.Meta().HealthChecks = byName[r.Meta().Name]
	}

	return g
}

func (w *world) statuses(ref string) []string {
	var out []string
	for _, h := range w.txs[ref].HealthCheck {
		out = append(out, h.Name+" "+string(h.Status))
	}

	return out
}

// TestOnlyCriticalFails checks the row health-check-only and formats.md, "Health checks".
func TestOnlyCriticalFails(t *testing.T) {
	w := newWorld(t)
	c := &clinic{}
	w.opts.Checker = c
	w.opts.RunID = "r1"
	s := w.run(w.checked("thing a value=1 | ok fine,warning,unknown", "thing b value=1 | ok,critical it burns", "thing c value=1 require=thing#b | ok", "thing d value=1"))
	w.outcomes("thing#a changed", "thing#b failed", "thing#c unmet", "thing#d changed")
	equal(t, w.statuses("thing#a"), []string{"a0 ok", "a1 warning", "a2 unknown"})
	equal(t, w.statuses("thing#b"), []string{"b0 ok", "b1 critical"})
	equal(t, w.statuses("thing#c"), nil)
	equal(t, w.txs["thing#b"].Errors, []string{`health check "b1" is critical: it burns`})
	if b := w.txs["thing#b"]; !b.Changed || !b.Failed {
		t.Errorf("%+v", b)
	}
	if want := (model.HealthCounts{OK: 2, Warning: 1, Critical: 1, Unknown: 1}); s.Counts.HealthChecks != want {
		t.Errorf("%+v", s.Counts.HealthChecks)
	}
	equal(t, c.env, []string{"MUSTER_RUN=r1", "MUSTER_STATE_DIR=" + w.opts.Env.Host.StateDir()})
}

func TestChecksFollowEveryTurn(t *testing.T) {
	w := newWorld(t)
	c := &clinic{}
	w.opts.Checker = c
	g := w.checked("thing a value=1 | ok", "thing b value=1 fail_at=apply | ok", "thing c value=1 noop=true | ok")
	w.run(g)
	w.outcomes("thing#a changed", "thing#b failed", "thing#c noop")
	equal(t, c.made, []string{"a0"})
	w.run(g)
	w.outcomes("thing#a stable", "thing#b failed", "thing#c noop")
	equal(t, c.made, []string{"a0", "a0"})
	w.opts.Env.Scope.Noop = true
	w.run(g)
	equal(t, c.made, []string{"a0", "a0"})
}

// TestChecksOfBatches checks resources that change together.
func TestChecksOfBatches(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker = &clinic{}
	w.run(w.checked("many a value=1 | ok", "many b value=1 | critical", "many c value=1"))
	w.outcomes("many#a changed", "many#b failed", "many#c changed")
}

func TestCriticalStopsWithFailOnError(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker, w.opts.FailOnError = &clinic{}, true
	w.run(w.checked("thing a value=1 | critical", "thing b value=1 | ok"))
	w.outcomes("thing#a failed", "thing#b notrun")
}

// TestMonitorOnly checks that a run of health checks observes and changes nothing, despite
// requirements and drift.
func TestMonitorOnly(t *testing.T) {
	w := newWorld(t)
	c := &clinic{}
	w.opts.Checker, w.opts.Cause = c, model.CauseHealth
	w.opts.Env.Scope.HealthCheckOnly = true
	g := w.checked("thing a value=1 | critical", "thing b value=1 require=thing#a drift=ignore | ok", "thing c value=1 drift=report | warning", "thing d value=1", "thing e value=1 noop=true | ok")
	w.run(g)
	w.outcomes("thing#a failed", "thing#b stable", "thing#c stable", "thing#d stable", "thing#e stable")
	slices.Sort(c.made)
	equal(t, c.made, []string{"a0", "b0", "c0"})
	// Check-only runs also include noop resources.
	c.made, w.opts.Cause = nil, model.CauseCommand
	w.run(g)
	slices.Sort(c.made)
	equal(t, c.made, []string{"a0", "b0", "c0", "e0"})
	c.made = nil
	equal(t, w.m.actions(), nil)
	for ref, tx := range w.txs {
		if !tx.HealthCheckOnly || tx.Changed || tx.Provider != "" {
			t.Errorf("%s: %+v", ref, tx)
		}
	}
	w.opts.Env.Scope.Noop = true
	w.run(g)
	if len(c.made) != 0 {
		t.Errorf("in noop it made %q", c.made)
	}
}

func TestRefreshOfTheCritical(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1", "svc b value=1")
	w.run(g)
	w.opts.Refresh, w.opts.Cause = []model.Ref{{Type: "svc", Name: "b"}}, model.CauseHealth
	w.run(g)
	w.outcomes("thing#a stable", "svc#b refreshed")
}

// TestHealthRunsAreNotAskedFor checks that a run after a critical check repairs no more than a run
// after drift.
func TestHealthRunsAreNotAskedFor(t *testing.T) {
	w := newWorld(t)
	w.opts.Cause = model.CauseHealth
	s := w.run(w.graph("thing a value=1", "thing b value=1 drift=report", "thing c value=1 drift=ignore"))
	w.outcomes("thing#a changed", "thing#b noop", "thing#c skipped")
	if s.Drift.Detected != 2 || s.Drift.Repaired != 1 {
		t.Errorf("%+v", s.Drift)
	}
}

func TestStopBreaksChecksOff(t *testing.T) {
	w := newWorld(t)
	w.stoppable()()
	w.opts.Checker = &clinic{hold: make(chan struct{})}
	w.opts.Env.Scope.HealthCheckOnly = true
	w.run(w.checked("thing a value=1 | ok"))
	w.outcomes("thing#a notrun")
}

// stopping stops the run during a check.
type stopping struct {
	clinic
	stop func()
}

func (s *stopping) CheckAll(ctx context.Context, checks []model.HealthCheck, env []string) []model.HealthResult {
	s.stop()
	<-ctx.Done()
	out := s.clinic.CheckAll(context.WithoutCancel(ctx), checks, env)
	for i := range out {
		if out[i].Status == "slow" {
			out[i].Status = ""
		}
	}

	return out
}

// TestChecksThatWereBrokenOff checks that interrupted checks have no result and do not count as
// healthy.
func TestChecksThatWereBrokenOff(t *testing.T) {
	const reason = "its health checks were interrupted: the run was stopped"
	for _, c := range []struct {
		line, outcome, run string
		made               []string
	}{
		{"thing a value=1 | slow", "changed", "failed", nil},
		{"thing a | ok,slow", "notrun", "notrun", []string{"a0 ok"}},
		{"thing a | critical,slow", "failed", "failed", []string{"a0 critical"}},
		{"thing a | ok", "stable", "notrun", []string{"a0 ok"}},
	} {
		w := newWorld(t)
		s := &stopping{stop: w.stoppable()}
		w.opts.Checker = s
		var registered []model.Ref
		w.opts.Register = func(ref model.Ref, entries []model.RegisterEntry) {
			if len(entries) > 0 {
				registered = append(registered, ref)
			}
		}
		g := w.checked(c.line, "thing b")
		for _, n := range g.Nodes() {
			r := n.Resource
			r.Meta().RegisterWhenStable = []model.RegisterEntry{{Service: "x"}}
		}
		run := w.run(g)
		w.outcomes("thing#a "+c.outcome, "thing#b notrun")
		equal(t, w.statuses("thing#a"), c.made)
		if run.Outcome() != model.Outcome(c.run) || run.OK() {
			t.Errorf("%s: the run is %s", c.line, run.Outcome())
		}
		isBroken := strings.Contains(c.line, "slow")
		if got := w.txs["thing#a"].SkipReason; (got == reason) != isBroken {
			t.Errorf("%s: the reason is %q", c.line, got)
		}
		if (len(registered) > 0) == isBroken {
			t.Errorf("%s: registered %v", c.line, registered)
		}
	}
}

// TestTimeOfChecksMadeAhead checks that the duration is the duration of the slowest check.
func TestTimeOfChecksMadeAhead(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker = timed{time.Minute, time.Hour}
	w.opts.Env.Scope.HealthCheckOnly = true
	w.run(w.checked("thing a | ok,ok"))
	if tx := w.txs["thing#a"]; tx.Duration < time.Hour || tx.Duration > 2*time.Hour || time.Since(tx.Timestamp) < time.Hour {
		t.Errorf("it began %s and took %s", tx.Timestamp, tx.Duration)
	}
}

// timed returns results with durations.
type timed []time.Duration

func (d timed) CheckAll(_ context.Context, checks []model.HealthCheck, _ []string) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	for i := range out {
		out[i] = model.HealthResult{Name: checks[i].Name, Status: model.HealthOK, Duration: d[i]}
	}

	return out
}

func TestWithoutAChecker(t *testing.T) {
	w := newWorld(t)
	w.run(w.checked("thing a value=1 | ok"))
	w.outcomes("thing#a changed")
	equal(t, w.statuses("thing#a"), []string{"a0 unknown"})
}

func TestHealthOfASensitiveResourceIsNotShown(t *testing.T) {
	w := newWorld(t)
	w.opts.Checker = &clinic{}
	w.opts.Secrets = []model.Secret{model.NewSecret("hunter2")}
	w.run(w.checked("thing a value=1 sensitive=true | critical password hunted", "thing b value=1 | critical with hunter2 in it"))
	equal(t, w.txs["thing#a"].Errors, []string{`health check "a0" is critical`})
	equal(t, w.txs["thing#b"].Errors, []string{`health check "b0" is critical: with [redacted] in it`})
	for _, ref := range []string{"thing#a", "thing#b"} {
		if said := w.txs[ref].HealthCheck[0].Output; strings.Contains(said, "hunte") {
			t.Errorf("%s shows %q", ref, said)
		}
	}
}

func TestLogLineOfHealth(t *testing.T) {
	w := newWorld(t)
	ok, warning, silent := model.HealthResult{Name: "a", Status: "ok"}, model.HealthResult{Name: "b", Status: "warning", Output: "load is 7\nmore"}, model.HealthResult{Name: "d", Status: "warning"}
	unknown, critical := model.HealthResult{Name: "c", Status: "unknown", Output: "/x does not exist"}, model.HealthResult{Name: "e", Status: "critical", Output: "down"}
	for _, c := range []struct {
		tx   model.Transaction
		want string
	}{
		{model.Transaction{HealthCheck: []model.HealthResult{ok, ok}}, "level=INFO msg=\"file#a stable\" ensure=present runtime=0s health=ok\n"},
		{model.Transaction{HealthCheck: []model.HealthResult{ok, silent}}, "level=WARN msg=\"file#a stable\" ensure=present runtime=0s health=d:warning\n"},
		{model.Transaction{HealthCheck: []model.HealthResult{warning, silent, unknown}}, "level=WARN msg=\"file#a stable\" ensure=present runtime=0s health=b:warning,d:warning,c:unknown output=\"b: load is 7; c: /x does not exist\"\n"},
		{model.Transaction{HealthCheck: []model.HealthResult{critical}, Failed: true, Errors: []string{"e"}}, "level=ERROR msg=\"file#a failed\" ensure=present runtime=0s health=e:critical error=e\n"},
		// A resource that was not observed has no state.
		{model.Transaction{HealthCheck: []model.HealthResult{ok}, HealthCheckOnly: true}, "level=INFO msg=\"file#a checked\" runtime=0s health=ok\n"},
		{model.Transaction{HealthCheckOnly: true}, "level=INFO msg=\"file#a not checked\" runtime=0s\n"},
		{model.Transaction{HealthCheckOnly: true, FinalEnsure: "present"}, "level=INFO msg=\"file#a stable\" ensure=present runtime=0s\n"},
	} {
		w.log.Reset()
		c.tx.Type, c.tx.Name, c.tx.RequestedEnsure = "file", "a", "present"
		engine.LogTransaction(t.Context(), w.opts.Env.Log, &c.tx)
		contains(t, w.log.String(), c.want)
	}
}
