package engine_test

import (
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// TestRefreshByEarlierCommands checks that a change refreshes each subscriber exactly once.
func TestRefreshByEarlierCommands(t *testing.T) {
	thing := func(o model.Transaction) model.Transaction { o.Type, o.Name, o.Alias = "thing", "a", "other"; return o }
	svc := func(o model.Transaction) model.Transaction { o.Type, o.Name = "svc", "s"; return o }
	changed, stable := thing(model.Transaction{Changed: true}), thing(model.Transaction{})
	refreshed := svc(model.Transaction{Changed: true, Refreshed: true})
	cases := map[string]struct {
		earlier []model.Transaction
		noop    bool
		want    model.Outcome
	}{
		"a change":                          {[]model.Transaction{changed}, false, model.OutcomeRefreshed},
		"a change that was followed up":     {[]model.Transaction{changed, refreshed}, false, model.OutcomeStable},
		"stable since the change":           {[]model.Transaction{changed, stable}, false, model.OutcomeRefreshed},
		"followed up before":                {[]model.Transaction{changed, refreshed, changed}, false, model.OutcomeRefreshed},
		"two changes, followed up":          {[]model.Transaction{changed, changed, refreshed, stable}, false, model.OutcomeStable},
		"never changed":                     {[]model.Transaction{stable}, false, model.OutcomeStable},
		"the refresh failed":                {[]model.Transaction{changed, svc(model.Transaction{Failed: true})}, false, model.OutcomeRefreshed},
		"the refresh was only planned":      {[]model.Transaction{changed, svc(model.Transaction{Changed: true, Refreshed: true, Noop: true})}, false, model.OutcomeRefreshed},
		"the change was only planned":       {[]model.Transaction{thing(model.Transaction{Changed: true, Noop: true})}, false, model.OutcomeStable},
		"planned, and noop again":           {[]model.Transaction{thing(model.Transaction{Changed: true, Noop: true})}, true, model.OutcomeNoop},
		"another one was refreshed by it":   {[]model.Transaction{changed, {Type: "svc", Name: "t", Changed: true, Refreshed: true}}, false, model.OutcomeRefreshed},
		"acted since, but not for its sake": {[]model.Transaction{changed, svc(model.Transaction{Changed: true})}, false, model.OutcomeRefreshed},
	}
	for name, c := range cases {
		for _, ref := range []string{"thing#a", "thing#other"} {
			t.Run(name+" of "+ref, func(t *testing.T) {
				w := newWorld(t)
				w.m.set("s", "x")
				w.opts.Env.Scope.Noop = c.noop
				w.opts.Prior = w.history(c.earlier...)
				g, err := plan.Build([]*resource.Resource{w.res("svc s value=x subscribe=" + ref)}, w.opts.Prior.Knows)
				if err != nil {
					t.Fatal(err)
				}
				w.run(g)
				w.outcomes("svc#s " + string(c.want))
			})
		}
	}
}

// TestRequireOfEarlierCommands checks that a run depends on earlier runs, and noop also on earlier
// predictions.
func TestRequireOfEarlierCommands(t *testing.T) {
	thing := model.Transaction{Type: "thing", Name: "a"}
	failed, planned, plannedFailed := thing, thing, thing
	failed.Failed, planned.Noop, plannedFailed.Failed, plannedFailed.Noop = true, true, true, true
	for name, c := range map[string]struct {
		earlier   []model.Transaction
		run, noop model.Outcome
	}{
		"done":                        {[]model.Transaction{thing}, model.OutcomeChanged, model.OutcomeNoop},
		"failed":                      {[]model.Transaction{failed}, model.OutcomeUnmet, model.OutcomeUnmet},
		"done at last":                {[]model.Transaction{failed, thing}, model.OutcomeChanged, model.OutcomeNoop},
		"done, noop failed":           {[]model.Transaction{thing, plannedFailed}, model.OutcomeChanged, model.OutcomeUnmet},
		"failed, would be done":       {[]model.Transaction{failed, planned}, model.OutcomeUnmet, model.OutcomeNoop},
		"would be done and never was": {[]model.Transaction{planned}, model.OutcomeChanged, model.OutcomeNoop},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Prior = w.history(c.earlier...)
			for noop, want := range map[bool]model.Outcome{true: c.noop, false: c.run} {
				w.m.set("b", "")
				w.opts.Env.Scope.Noop = noop
				g, err := plan.Build([]*resource.Resource{w.res("thing b value=1 require=thing#a")}, w.opts.Prior.Knows)
				if err != nil {
					t.Fatal(err)
				}
				w.run(g)
				w.outcomes("thing#b " + string(want))
			}
		})
	}
}

// TestNoopIsNotCountedInASession checks the counts of a session with noop.
func TestNoopIsNotCountedInASession(t *testing.T) {
	w := newWorld(t)
	s := w.session(
		model.Transaction{Type: "thing", Name: "a", Changed: true, Noop: true},
		model.Transaction{Type: "thing", Name: "b", Changed: true},
		model.Transaction{Type: "thing", Name: "b", Failed: true, Noop: true},
		model.Transaction{Type: "thing", Name: "c", Noop: true},
	)
	sum, err := s.Summary()
	if want := (model.Counts{Total: 1, Unique: 1, Changed: 1}); err != nil || sum.Counts != want || !sum.StartTime.Equal(sum.EndTime) {
		t.Fatalf("%+v, %v", sum, err)
	}
}

// history returns the history of a session.
func (w *world) history(all ...model.Transaction) plan.History {
	w.t.Helper()
	h, err := w.session(all...).History()
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// session stores transactions in a session, one second apart.
func (w *world) session(all ...model.Transaction) *engine.SessionStore {
	w.t.Helper()
	s, err := engine.NewSession(w.t.Context(), w.opts.Env.Host, w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, tx := range all {
		tx.EventID, tx.Timestamp = ksuid.New().String(), begin.Add(time.Duration(i)*time.Second)
		if err := s.Append(w.t.Context(), &tx); err != nil {
			w.t.Fatal(err)
		}
	}
	return s
}
