package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// world contains the types of a test, the machine that they manage, and the log.
type world struct {
	t     *testing.T
	m     *machine
	types resource.Types
	log   bytes.Buffer
	opts  engine.Options
	txs   map[string]*model.Transaction
	order []string
	hook  func(event, name string)
	ctx   context.Context // for the runs after stoppable
}

// stoppable lets the next runs finish the current change when stop is called.
func (w *world) stoppable() (stop func()) {
	w.ctx, stop = context.WithCancel(w.t.Context())
	return stop
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, m: newMachine()}
	mk := func(name string, change func(*resource.Info)) thing {
		th := newThing(w.m, name, change)
		th.hook = func(event, n string) {
			if w.hook != nil {
				w.hook(event, n)
			}
		}
		return th
	}
	refreshes := func(i *resource.Info) { i.Refreshes, i.Writes = true, resource.Everything }
	w.types = resource.Types{
		resource.Of[*spec, *state, provider](mk("thing", nil), plain{}),
		resource.Of[*spec, *state, provider](mk("svc", refreshes), plain{}),
		resource.Of[*spec, *state, provider](mk("units", nil), plain{}),
		resource.Of[*spec, *state, provider](relating{mk("rel", nil)}, plain{}),
		resource.Of[*spec, *state, provider](many{mk("many", func(i *resource.Info) { i.Reads, i.Writes = resource.Packages, resource.Packages })}, plain{}),
		resource.Of[*spec, *state, provider](many{mk("daemons", func(i *resource.Info) { i.Refreshes, i.Reads, i.Writes = true, resource.Units, resource.Units })}, plain{}),
		resource.Of[*spec, *state, provider](part{many{mk("line", func(i *resource.Info) { i.Family = "parts" })}}, plain{}),
		resource.Of[*spec, *state, provider](part{many{mk("block", func(i *resource.Info) { i.Family = "parts" })}}, plain{}),
		resource.Of[*spec, *state, provider](mk("wide", func(i *resource.Info) { i.Parallel = 4 }), plain{}),
		resource.Of[*spec, *state, provider](relating{mk("broad", func(i *resource.Info) { i.Parallel = 4 })}, plain{}),
		resource.Of[*spec, *state, provider](guarded{mk("guarded", refreshes)}, plain{}),
		resource.Of[*spec, *settlingState, provider](settling{many{mk("settling", func(i *resource.Info) { i.Reads, i.Writes = resource.Units, resource.Units })}}, plain{}),
	}
	w.opts = engine.Options{
		Identity: engine.Identity{Manifest: "test.yaml", Cause: model.CauseCommand},
		Env:      resource.Env{Host: hosttest.New(t), Log: slog.New(slog.NewTextHandler(&w.log, nil))},
	}
	return w
}

// res makes a resource of "type name key=value …"; lists are comma separated.
func (w *world) res(line string) *resource.Resource {
	w.t.Helper()
	words := strings.Fields(line)
	typ, ok := w.types.Get(words[0])
	if !ok {
		w.t.Fatalf("no type %s", words[0])
	}
	props := document.Value{Kind: document.Map}
	add := func(key string, v document.Value) {
		props.Entries = append(props.Entries, document.Entry{Key: key, Value: v})
	}
	add("name", document.Value{Kind: document.String, Text: words[1]})
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		v := document.Value{Kind: document.String, Text: value}
		if slices.Contains([]string{"require", "subscribe", "needs", "provides", "along", "removes", "unless", "reads"}, key) {
			v = document.Value{Kind: document.List}
			for _, item := range strings.Split(value, ",") {
				v.Items = append(v.Items, document.Value{Kind: document.String, Text: item})
			}
		}
		add(key, v)
	}
	r, problems := resource.Decode(typ, props, model.Position{File: "test.yaml", Line: 1})
	if problems != nil {
		w.t.Fatal(problems)
	}
	return r
}

func (w *world) build(lines ...string) (*plan.Graph, error) {
	w.t.Helper()
	var all []*resource.Resource
	for i, line := range lines {
		r := w.res(line)
		r.Pos.Line = i + 1
		all = append(all, r)
	}
	return plan.Build(all, nil)
}

func (w *world) graph(lines ...string) *plan.Graph {
	w.t.Helper()
	g, err := w.build(lines...)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) run(g *plan.Graph) *model.Run {
	w.t.Helper()
	return w.runCtx(w.t.Context(), g)
}

func (w *world) runCtx(ctx context.Context, g *plan.Graph) *model.Run {
	w.txs, w.order = map[string]*model.Transaction{}, nil
	opts := w.opts
	if w.ctx != nil {
		ctx, opts.Grace = w.ctx, engine.GracePeriod(time.Minute)
	}
	opts.OnTransaction = func(t *model.Transaction) {
		w.txs[t.Ref().String()] = t
		w.order = append(w.order, t.Ref().String())
	}
	return engine.Run(ctx, g, opts)
}

func (w *world) outcomes(want ...string) {
	w.t.Helper()
	var got []string
	for _, ref := range w.order {
		got = append(got, ref+" "+string(w.txs[ref].Outcome()))
	}
	equal(w.t, got, want)
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Fatalf("%q does not contain %q", text, p)
		}
	}
}

func TestOrder(t *testing.T) {
	cases := map[string]struct{ lines, want []string }{
		"declaration order":          {[]string{"thing b value=1", "thing a value=1", "thing c value=1"}, []string{"b", "a", "c"}},
		"a reference forward":        {[]string{"thing a value=1 require=thing#c", "thing b value=1", "thing c value=1"}, []string{"b", "c", "a"}},
		"subscribe orders too":       {[]string{"thing a value=1 subscribe=thing#b", "thing b value=1"}, []string{"b", "a"}},
		"by alias":                   {[]string{"thing a value=1 require=thing#other", "thing b value=1 alias=other"}, []string{"b", "a"}},
		"a need orders":              {[]string{"rel a value=1 needs=value:b", "rel b value=1"}, []string{"b", "a"}},
		"what was written wins":      {[]string{"rel a value=1 needs=value:b", "rel b value=1 require=rel#a"}, []string{"a", "b"}},
		"the provider that is first": {[]string{"rel a value=1 provides=x", "rel b value=1 needs=x", "rel c value=1 provides=x"}, []string{"a", "b", "c"}},
		"needs of each other":        {[]string{"rel a value=1 needs=value:b", "rel b value=1 needs=value:a"}, []string{"a", "b"}},
		"needs in a ring":            {[]string{"rel a value=1 needs=value:c", "rel b value=1 needs=value:a", "rel c value=1 needs=value:b"}, []string{"a", "b", "c"}},
		"a ring with another":        {[]string{"rel a value=1 needs=value:d,value:b", "rel b value=1 needs=value:a", "rel d value=1"}, []string{"d", "a", "b"}},
		"a later and an earlier one": {[]string{"rel a value=1 provides=x", "rel n value=1 needs=x,y", "rel c value=1 provides=x,y"}, []string{"a", "c", "n"}},
		"its own need":               {[]string{"rel a value=1 needs=value:a", "rel b value=1"}, []string{"a", "b"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var got []string
			for _, n := range w.graph(c.lines...).Nodes() {
				r := n.Resource
				got = append(got, r.Meta().Name)
			}
			equal(t, got, c.want)
		})
	}
}

func TestEdgesSayWhy(t *testing.T) {
	var got []string
	for _, step := range newWorld(t).graph("rel a value=1", "thing b value=1 require=rel#a", "svc c value=x subscribe=thing#b,rel#a require=thing#b", "rel d value=1 needs=value:a", "rel e value=1 needs=value:a require=rel#a").Steps() {
		for _, e := range step.Waits {
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%s -> %s: %s %t", e.From, e.To, e.Reason, e.Automatic), " false"))
		}
	}
	equal(t, got, []string{
		"rel#a -> thing#b: require", "thing#b -> svc#c: require", "thing#b -> svc#c: subscribe", "rel#a -> svc#c: subscribe",
		"rel#a -> rel#d: value:a true", "rel#a -> rel#e: require",
	})
}

// TestSteps checks what each resource waits for, in the order of the run.
func TestSteps(t *testing.T) {
	w := newWorld(t)
	var all []*resource.Resource
	for _, line := range []string{"rel d value=1 needs=value:a,value:c", "thing b value=1 require=thing#gone,rel#a subscribe=svc#gone", "rel a value=1", "rel c value=1 require=thing#b alias=z", "thing e value=1 require=rel#z,rel#a"} {
		all = append(all, w.res(line))
	}
	all[4].Taken = []resource.Reference{{Ref: model.Ref{Type: "rel", Name: "z"}, Property: "outputs"}}
	g, err := plan.Build(all, func(ref model.Ref) bool { return ref.Name == "gone" })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range g.Steps() {
		line := s.Resource.Ref().String()
		for _, e := range append(s.Waits, s.Elsewhere...) {
			if e.To != s.Resource.Ref() {
				t.Errorf("%s waits for %s", e.To, e.From)
			}
			line += fmt.Sprintf(", %s by %s", e.From, e.Reason)
		}
		got = append(got, line)
	}
	equal(t, got, []string{
		"rel#a", "thing#b, rel#a by require, thing#gone by require, svc#gone by subscribe", "rel#c, thing#b by require",
		"rel#d, rel#a by value:a, rel#c by value:c", "thing#e, rel#c by outputs, rel#a by require",
	})
}

// TestLateResourcesAreRelated checks the order of deferred resources by their known relations.
func TestLateResourcesAreRelated(t *testing.T) {
	w := newWorld(t)
	late, dir := w.res("rel late needs=value:dir"), w.res("rel dir value=1")
	late.ResolveDeferred = func(context.Context, resource.Outputs) (resource.Spec, []model.Secret, error) {
		return w.res("rel late value=2").Spec, nil, nil
	}
	g, err := plan.Build([]*resource.Resource{late, dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.run(g)
	w.outcomes("rel#dir changed", "rel#late changed")
}

func TestGraphErrors(t *testing.T) {
	cases := map[string]struct {
		lines []string
		want  []string
	}{
		"unknown reference": {[]string{"thing alpha value=1", "thing b require=thing#alpah"}, []string{"test.yaml:2", "`require` names thing#alpah, which is not declared", "did you mean `thing#alpha`?"}},
		"one name twice":    {[]string{"thing a value=1", "thing a value=1"}, []string{"test.yaml:2", "thing#a is declared twice, first at test.yaml:1"}},
		"under two names":   {[]string{"units a value=1", "units b value=1", "units a.unit value=1"}, []string{"test.yaml:3: units#a.unit is declared twice, first as units#a at test.yaml:1 (keep one of them)"}},
		"an alias twice":    {[]string{"thing a value=1 alias=c", "thing b value=1 alias=c"}, []string{"thing#c is declared twice"}},
		"a cycle":           {[]string{"thing a require=thing#c", "thing b require=thing#a", "thing c subscribe=thing#b", "thing d require=thing#c"}, []string{"wait for each other", "thing#a (test.yaml:1)", "thing#b (test.yaml:2)", "thing#c (test.yaml:3)"}},
		"itself":            {[]string{"thing a require=thing#a"}, []string{"thing#a waits for itself by `require`"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newWorld(t).build(c.lines...)
			if err == nil {
				t.Fatal("no error")
			}
			contains(t, err.Error(), c.want...)
		})
	}
}

// TestExcludedUnderAnotherName checks that an excluded resource declares nothing.
func TestExcludedUnderAnotherName(t *testing.T) {
	w := newWorld(t)
	a, b := w.res("units a value=1"), w.res("units a.unit value=1")
	a.Excluded = "control"
	if g, err := plan.Build([]*resource.Resource{a, b}, nil); err != nil || g.Len() != 2 {
		t.Fatal(err)
	}
}

func TestIdenticalResourcesOfTwoDocumentsAreOne(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.res("thing a value=1"), w.res("thing a value=1"), w.res("thing a value=2")
	b.Pos.File, c.Pos.File = "other.yaml", "third.yaml"
	g, err := plan.Build([]*resource.Resource{a, b}, nil)
	if err != nil || g.Len() != 1 {
		t.Fatalf("%v, %d resources", err, g.Len())
	}
	_, err = plan.Build([]*resource.Resource{a, c}, nil)
	if err == nil {
		t.Fatal("two that differ were taken for one")
	}
	contains(t, err.Error(), "third.yaml:1", "test.yaml:1")
}

func TestRunChangesThenIsStable(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1", "thing b value=2")
	run := w.run(g)
	w.outcomes("thing#a changed", "thing#b changed")
	if run.Counts.Changed != 2 || run.Outcome() != model.OutcomeChanged {
		t.Fatalf("%+v", run)
	}
	tx := w.txs["thing#a"]
	if tx.FinalEnsure != "present" || tx.Provider != "plain" || tx.Changes[0].To != "1" || tx.RunID != run.RunID {
		t.Fatalf("%+v", tx)
	}
	if run = w.run(g); run.Outcome() != model.OutcomeStable || run.Counts.Stable != 2 {
		t.Fatalf("%+v", run)
	}
	equal(t, w.m.actions(), []string{"set a", "set b"})
}

func TestNoopChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.opts.Env.Scope.Noop = true
	g := w.graph("thing a value=1", "svc s value=x subscribe=thing#a", "guarded g value=1")
	w.m.set("s", "x")
	run := w.run(g)
	w.outcomes("thing#a noop", "svc#s noop", "guarded#g noop")
	equal(t, w.m.actions(), nil)
	if got := w.txs["svc#s"].NoopMessage; got != "Would have refreshed s" {
		t.Fatal(got)
	}
	equal(t, []string{fmt.Sprint(w.txs["thing#a"].WouldRefresh)}, []string{"[svc#s]"})
	if run.Outcome() != model.OutcomeNoop {
		t.Fatal(run.Outcome())
	}
}

func TestNoopOfOneResourceRefreshesNobody(t *testing.T) {
	w := newWorld(t)
	w.m.set("s", "x")
	w.run(w.graph("thing a value=1 noop=true", "svc s value=x subscribe=thing#a"))
	w.outcomes("thing#a noop", "svc#s stable")
	equal(t, w.m.actions(), nil)
	if fmt.Sprint(w.txs["thing#a"].WouldRefresh) != "[svc#s]" {
		t.Fatalf("%+v", w.txs["thing#a"])
	}
}

func TestNoopUnknownUntil(t *testing.T) {
	lines := func(first string) []string { return []string{first, "thing user value=1 missing=app"} }
	cases := map[string]struct {
		lines []string
		want  string
	}{
		"a provider":          {lines("rel app value=1"), "unknown until rel#app is applied"},
		"the right one":       {[]string{"rel app value=1", "svc other value=1", "thing user value=1 missing=app"}, "unknown until rel#app is applied"},
		"a command":           {lines("svc makes value=1"), "unknown until svc#makes is applied"},
		"one that does":       {[]string{"rel other value=1", "thing user value=1 missing=app or=other"}, "unknown until rel#other is applied"},
		"a requirement":       {[]string{"thing x value=1", "thing user value=1 missing=app require=thing#x"}, "unknown until thing#x is applied"},
		"what it comes after": {[]string{"rel x value=1", "rel user value=1 missing=app needs=value:x"}, "unknown until rel#x is applied"},
		"nothing of note":     {lines("thing x value=1"), ""},
		"nothing pending":     {lines("rel app"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Env.Scope.Noop = true
			w.run(w.graph(c.lines...))
			tx := w.txs[w.order[len(w.order)-1]]
			if tx.NoopMessage != c.want || tx.Failed != (c.want == "") {
				t.Fatalf("%+v", tx)
			}
		})
	}
}

func TestNoopPlansWhatAnotherResourceWillMakePossible(t *testing.T) {
	w := newWorld(t)
	w.opts.Env.Scope.Noop = true
	w.run(w.graph("rel dir value=1", "thing file value=1 fail_at=plan-missing missing=dir", "thing lost value=1 fail_at=plan-missing missing=nowhere"))
	w.outcomes("rel#dir noop", "thing#file noop", "thing#lost failed")
	if tx := w.txs["thing#file"]; tx.NoopMessage != "Would have set file" || len(tx.Changes) != 1 {
		t.Fatalf("%+v", tx)
	}
}

func TestRequireGates(t *testing.T) {
	w := newWorld(t)
	run := w.run(w.graph("thing a value=1 fail_at=apply", "thing b value=1 require=thing#a", "thing c value=1 require=thing#b", "thing d value=1", "thing e value=1 subscribe=thing#a"))
	w.outcomes("thing#a failed", "thing#b unmet", "thing#c unmet", "thing#d changed", "thing#e changed")
	if fmt.Sprint(w.txs["thing#c"].UnmetRequirements) != "[thing#b]" {
		t.Fatal(w.txs["thing#c"].UnmetRequirements)
	}
	if run.Outcome() != model.OutcomeFailed || run.Counts.Failed != 1 || run.Counts.Unmet != 2 || run.Counts.Skipped != 2 {
		t.Fatalf("%+v", run.Counts)
	}
}

func TestRequireOfAnExcludedResourceIsMet(t *testing.T) {
	w := newWorld(t)
	a, b := w.res("thing a value=1"), w.res("thing b value=1 require=thing#a")
	a.Excluded = "control.if is false"
	g, err := plan.Build([]*resource.Resource{a, b}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.run(g)
	w.outcomes("thing#a skipped", "thing#b changed")
}

func TestFailOnErrorStops(t *testing.T) {
	w := newWorld(t)
	w.opts.FailOnError = true
	run := w.run(w.graph("thing a value=1", "thing b value=1 fail_at=apply", "thing c value=1"))
	w.outcomes("thing#a changed", "thing#b failed", "thing#c notrun")
	if run.Counts.NotRun != 1 {
		t.Fatalf("%+v", run.Counts)
	}
	contains(t, w.txs["thing#c"].SkipReason, "thing#b failed")
}

func TestFailures(t *testing.T) {
	cases := map[string]struct{ line, want string }{
		"status": {"thing a value=1 fail_at=status", "status failed"},
		"plan":   {"thing a value=1 fail_at=plan", "plan failed"},
		"apply":  {"thing a value=1 fail_at=apply", "apply failed"},
		"verify": {"thing a value=1 fail_at=verify", "desired state not achieved: still due: Would have set a"},
		"panic":  {"thing a value=1 fail_at=panic", "panic in the resource type: boom a"},
		"hang":   {"thing a value=1 fail_at=hang timeout=10ms", "timed out after 10ms"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run(w.graph(c.line, "thing other value=1"))
			w.outcomes("thing#a failed", "thing#other changed")
			contains(t, strings.Join(w.txs["thing#a"].Errors, "\n"), c.want)
		})
	}
}

func TestRetryKeepsTheRefresh(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("thing a value=1", "svc s value=x fail_at=apply times=2 retry=2 delay=1ms subscribe=thing#a"))
	w.outcomes("thing#a changed", "svc#s refreshed")
	equal(t, w.m.actions(), []string{"set a", "tried s", "tried s", "refresh s"})
	w = newWorld(t)
	w.run(w.graph("thing a value=1 fail_at=apply retry=1"))
	w.outcomes("thing#a failed")
	equal(t, w.m.actions(), []string{"tried a", "tried a"})
}

func TestRefresh(t *testing.T) {
	w := newWorld(t)
	w.m.set("s", "x")
	w.m.set("last", "x")
	g := w.graph("thing a value=1", "svc s value=x subscribe=thing#a", "svc last value=x subscribe=svc#s", "thing deaf value=1 subscribe=thing#a")
	w.run(g)
	w.outcomes("thing#a changed", "svc#s refreshed", "svc#last refreshed", "thing#deaf changed")
	w.run(g)
	w.outcomes("thing#a stable", "svc#s stable", "svc#last stable", "thing#deaf stable")
}

func TestUnchangedAfterAllRefreshesNobody(t *testing.T) {
	w := newWorld(t)
	w.m.set("s", "x")
	w.run(w.graph("thing a value=1 fail_at=unchanged", "svc s value=x subscribe=thing#a"))
	w.outcomes("thing#a stable", "svc#s stable")
}

func TestOwedRefreshSurvives(t *testing.T) {
	ways := map[string]func(w *world, cancel context.CancelCauseFunc){
		"a kill": func(w *world, cancel context.CancelCauseFunc) {
			w.hook = func(event, name string) {
				if event == "apply" && name == "b" {
					cancel(errors.New("killed"))
				}
			}
		},
		"a failure with fail_on_error": func(w *world, _ context.CancelCauseFunc) { w.opts.FailOnError = true },
	}
	for name, interrupt := range ways {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.set("s", "x")
			w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
			lines := []string{"thing a value=1", "thing b value=1 fail_at=apply times=1", "svc s value=x subscribe=thing#a"}
			g := w.graph(lines...)
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupt(w, cancel)
			w.runCtx(ctx, g)
			w.outcomes("thing#a changed", "thing#b failed", "svc#s notrun")
			w.hook = nil
			w.run(g)
			w.outcomes("thing#a stable", "thing#b changed", "svc#s refreshed")
			w.run(g)
			w.outcomes("thing#a stable", "thing#b stable", "svc#s stable")
			owed, err := w.opts.Journal.Pending()
			if err != nil || len(owed) > 0 {
				t.Fatalf("%v, still owed %v", err, owed)
			}
		})
	}
}

func TestRefreshThatFailsIsOwed(t *testing.T) {
	w := newWorld(t)
	w.m.set("s", "x")
	w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
	g := w.graph("thing a value=1", "svc s value=x fail_at=apply times=1 subscribe=thing#a")
	w.run(g)
	w.outcomes("thing#a changed", "svc#s failed")
	w.opts.Env.Scope.Noop = true
	w.run(g)
	w.outcomes("thing#a stable", "svc#s noop")
	w.opts.Env.Scope.Noop = false
	w.run(g)
	w.outcomes("thing#a stable", "svc#s refreshed")
}

func TestFailedChangeThatChangedNothingOwesNothing(t *testing.T) {
	w := newWorld(t)
	w.m.set("s", "x")
	w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
	g := w.graph("thing a value=1 fail_at=apply", "svc s value=x subscribe=thing#a")
	for range 2 {
		w.run(g)
		w.outcomes("thing#a failed", "svc#s stable")
	}
	if owed, err := w.opts.Journal.Pending(); err != nil || len(owed) > 0 {
		t.Fatalf("%v, owed %v", err, owed)
	}
}

// TestFailedChangeThatMayHaveChangedSomethingStaysOwed checks that the refresh stays pending until
// the resource is in its desired state, and is then made once.
func TestFailedChangeThatMayHaveChangedSomethingStaysOwed(t *testing.T) {
	for name, typ := range map[string]string{"alone": "thing", "in a batch": "broad", "in one transaction": "many"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.m.set("s", "x")
			w.opts.Journal = engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
			a, b, s := typ+" a value=1 fail_at=halfway", typ+" b value=", "svc s value=x subscribe="+typ+"#a,"+typ+"#b"
			steps := []struct{ b, a, s string }{
				{"changed", "failed", "refreshed"}, {"stable", "failed", "stable"}, {"stable", "failed", "stable"}, {"changed", "failed", "refreshed"}, {"stable", "failed", "stable"},
			}
			for i, step := range steps {
				w.run(w.graph(b+fmt.Sprint(min(i, 3)/3), a, s))
				w.outcomes(typ+"#b "+step.b, typ+"#a "+step.a, "svc#s "+step.s)
			}
			w.m.set("a", "1")
			g := w.graph(b+"1", a, s)
			w.run(g)
			w.outcomes(typ+"#b stable", typ+"#a stable", "svc#s refreshed")
			w.run(g)
			w.outcomes(typ+"#b stable", typ+"#a stable", "svc#s stable")
		})
	}
}

func TestDebtOfAResourceThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	j := engine.NewFileJournal(w.opts.Env.Host, t.TempDir(), "test.yaml")
	w.opts.Journal = j
	if err := j.Add(t.Context(), model.Ref{Type: "svc", Name: "gone"}); err != nil {
		t.Fatal(err)
	}
	w.run(w.graph("thing a value=1"))
	if owed, err := j.Pending(); err != nil || len(owed) > 0 {
		t.Fatalf("%v, owed %v", err, owed)
	}
}

func TestStopFinishesTheChangeInHand(t *testing.T) {
	w := newWorld(t)
	stop := w.stoppable()
	w.hook = func(event, name string) {
		if event == "apply" && name == "a" {
			stop()
		}
	}
	run := w.run(w.graph("thing a value=1", "thing b value=1"))
	w.outcomes("thing#a changed", "thing#b notrun")
	if run.Outcome() != model.OutcomeNotRun {
		t.Fatal(run.Outcome())
	}
}

func TestLooksAgainAfterAChange(t *testing.T) {
	w := newWorld(t)
	// svc may have changed anything, so b must be observed again.
	w.hook = func(event, name string) {
		if event == "apply" && name == "cmd" {
			w.m.set("b", "1")
		}
	}
	w.run(w.graph("svc cmd value=1", "thing b value=1"))
	w.outcomes("svc#cmd changed", "thing#b stable")
}

func TestGroupsAreAskedTogether(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("many a value=1", "many b value=1 require=many#a", "many c value=1", "thing x value=1", "many d value=1"))
	equal(t, w.order, []string{"many#a", "many#b", "many#c", "thing#x", "many#d"})
	equal(t, w.m.actions(), []string{
		"look at 4", "set a", "look at 4", "change 2 together", "set b", "set c", "look at 2", "set x", "look at 1", "set d", "look at 1",
	})
}

func TestParallelChanges(t *testing.T) {
	w := newWorld(t)
	var lines, want []string
	for i := range 30 {
		line, outcome := fmt.Sprintf("wide f%02d value=%d", i, i), "changed"
		switch i {
		case 7:
			line, outcome = line+" fail_at=apply", "failed"
		case 9:
			line, outcome = line+" fail_at=panic-apply", "failed"
		case 20:
			line += " require=wide#f19"
		}
		lines, want = append(lines, line), append(want, fmt.Sprintf("wide#f%02d %s", i, outcome))
	}
	run := w.run(w.graph(lines...))
	w.outcomes(want...)
	if run.Counts.Changed != 28 || run.Counts.Failed != 2 {
		t.Fatalf("%+v", run.Counts)
	}
}

func TestFailOnErrorStopsAlsoAmongWhatCouldChangeTogether(t *testing.T) {
	for _, typ := range []string{"wide", "many"} {
		w := newWorld(t)
		w.opts.FailOnError = true
		w.run(w.graph(typ+" a value=1", typ+" b value=1 fail_at=apply", typ+" c value=1", typ+" d value=1"))
		w.outcomes(typ+"#a changed", typ+"#b failed", typ+"#c notrun", typ+"#d notrun")
		equal(t, slices.DeleteFunc(w.m.actions(), func(did string) bool { return strings.HasPrefix(did, "look") }), []string{"set a", "tried b"})
	}
}

func TestStopWaitsForTheBatchInHandOnly(t *testing.T) {
	w := newWorld(t)
	stop := w.stoppable()
	var once sync.Once
	w.hook = func(event, _ string) {
		if event == "apply" {
			once.Do(func() { stop() })
		}
	}
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("wide f%02d value=%d", i, i))
	}
	run := w.run(w.graph(lines...))
	if run.Counts.Changed == 0 || run.Counts.NotRun == 0 || run.Counts.Changed+run.Counts.NotRun != 100 {
		t.Fatalf("%+v", run.Counts)
	}
}

func TestBatchFallsBackToOneByOne(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("many a value=1", "many b value=1 fail_at=together", "many c value=1 fail_at=apply"))
	w.outcomes("many#a changed", "many#b changed", "many#c failed")
}

func TestGuardIsAskedOnceAlsoInNoop(t *testing.T) {
	for _, noop := range []bool{false, true} {
		w := newWorld(t)
		w.opts.Env.Scope.Noop = noop
		w.run(w.graph("guarded a value=1 guard=door", "thing b value=1"))
		got := slices.DeleteFunc(w.m.actions(), func(s string) bool { return !strings.HasPrefix(s, "guard") && !strings.HasPrefix(s, "prepare") })
		want := []string{"prepare 1", "guard a"}
		if noop {
			want = want[1:]
		}
		equal(t, got, want)
		if w.txs["guarded#a"].Outcome() != model.OutcomeStable {
			t.Fatal(w.txs["guarded#a"].Outcome())
		}
	}
}

// TestStaleLookIsTakenAgain checks that a type prepares only after an outdated observation, once,
// and never in noop.
func TestStaleLookIsTakenAgain(t *testing.T) {
	for _, c := range []struct {
		stale string
		noop  bool
		want  []string
	}{
		{stale: "", want: []string{"look at 2"}},
		{stale: "yes", want: []string{"look at 2", "prepare 2", "look at 2"}},
		{stale: "always", want: []string{"look at 2", "prepare 2", "look at 2"}},
		{stale: "yes", noop: true, want: []string{"look at 2"}},
		{stale: "broken", want: []string{"look at 2", "prepare 2"}},
	} {
		w := newWorld(t)
		w.m.set("stale", c.stale)
		w.m.set("a", "1")
		w.m.set("b", "1")
		w.opts.Env.Scope.Noop = c.noop
		run := w.run(w.graph("settling a value=1", "settling b value=1"))
		equal(t, w.m.actions(), c.want)
		if failed := run.Counts.Failed; (failed == 2) != (c.stale == "broken") {
			t.Errorf("%+v: %+v", c, run.Counts)
		}
	}
}

func TestDriftProperty(t *testing.T) {
	w := newWorld(t)
	w.opts.Cause = model.CauseSchedule
	run := w.run(w.graph("thing a value=1", "thing b value=1 drift=report", "thing c value=1 drift=ignore"))
	w.outcomes("thing#a changed", "thing#b noop", "thing#c skipped")
	if run.Drift.Detected != 2 || run.Drift.Repaired != 1 {
		t.Fatalf("%+v", run.Drift)
	}
}

func TestOutputsReachLaterResources(t *testing.T) {
	w := newWorld(t)
	first, second := w.res("guarded a value=hello"), w.res("thing b")
	second.Taken = []resource.Reference{{Ref: first.Ref(), Property: "outputs"}}
	second.ResolveDeferred = func(_ context.Context, out resource.Outputs) (resource.Spec, []model.Secret, error) {
		v, ok := out[first.Ref()]["value"]
		if !ok {
			return nil, nil, errors.New("not known yet")
		}
		s := *second.Spec.(*spec)
		s.Value = fmt.Sprint(v)
		return &s, nil, nil
	}
	g, err := plan.Build([]*resource.Resource{first, second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.opts.Env.Scope.Noop = true
	w.run(g)
	if got := w.txs["thing#b"].NoopMessage; got != "unknown until guarded#a is applied" || w.txs["thing#b"].Failed {
		t.Fatalf("%+v", w.txs["thing#b"])
	}
	w.opts.Env.Scope.Noop = false
	w.run(g)
	if w.m.get("b") != "hello" {
		t.Fatal(w.m.get("b"))
	}
}

// TestOutputsInTransactions checks that a transaction has the requested outputs, without secrets,
// and the changes.
func TestOutputsInTransactions(t *testing.T) {
	const secret = "hunter2-hunter2"
	for line, c := range map[string]struct {
		outputs bool
		want    any
	}{
		"guarded a value=hello":                         {true, "hello"},
		"guarded a value=" + secret:                     {true, model.Redacted},
		"guarded a value=" + secret + " sensitive=true": {true, nil},
		"guarded a value=hello ":                        {false, nil},
	} {
		w := newWorld(t)
		w.opts.Outputs, w.opts.Secrets = c.outputs, []model.Secret{model.NewSecret(secret)}
		w.run(w.graph(strings.TrimSpace(line)))
		tx := w.txs["guarded#a"]
		if got := tx.Outputs["value"]; got != c.want {
			t.Errorf("%s: %v", line, got)
		}
		if !tx.Changed || tx.Changes[0].Message != "set a" {
			t.Errorf("%s: %+v", line, tx.Changes)
		}
	}
	w := newWorld(t)
	w.run(w.graph("thing b value=1 fail_at=apply"))
	if got := w.txs["thing#b"].Changes[0].Message; got != "Would have set b" {
		t.Errorf("of a failure: %s", got)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, marked := range []bool{true, false} {
		w := newWorld(t)
		w.opts.Full = true
		a := w.res("thing a value=" + secret)
		if marked {
			a = w.res("thing a value=" + secret + " sensitive=true")
		} else {
			a.Secrets = []model.Secret{model.NewSecret(secret)}
		}
		b := w.res("thing b value=" + secret + " fail_at=apply")
		g, err := plan.Build([]*resource.Resource{a, b}, nil)
		if err != nil {
			t.Fatal(err)
		}
		run := w.run(g)
		if w.m.get("a") != secret {
			t.Fatal("the resource itself must get the value")
		}
		all, err := json.Marshal([]any{w.txs["thing#a"], run, w.txs["thing#b"].Errors})
		if err != nil {
			t.Fatal(err)
		}
		for where, text := range map[string]string{"documents": string(all), "log": w.log.String()} {
			if strings.Contains(text, secret) {
				t.Fatalf("secret shown in %s: %s", where, text)
			}
		}
		contains(t, w.log.String(), model.Redacted)
	}
}

func TestEarlierCommandsOfTheSession(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	if _, err := engine.NewSession(t.Context(), w.opts.Env.Host, dir); err != nil {
		t.Fatal(err)
	}
	s, err := engine.OpenSession(w.opts.Env.Host, dir)
	if err != nil {
		t.Fatal(err)
	}
	store := func() {
		for _, tx := range w.txs {
			if err := s.Append(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
		}
	}
	earlier := func() plan.Known {
		w.opts.Prior, err = s.History()
		if err != nil {
			t.Fatal(err)
		}
		return w.opts.Prior.Knows
	}
	w.run(w.graph("thing a value=1", "thing bad value=1 fail_at=apply"))
	store()
	w.m.set("s", "x")
	g, err := plan.Build([]*resource.Resource{w.res("svc s value=x subscribe=thing#a"), w.res("thing c value=1 require=thing#bad")}, earlier())
	if err != nil {
		t.Fatal(err)
	}
	w.run(g)
	w.outcomes("svc#s refreshed", "thing#c unmet")
	store()
	sum, err := s.Summary()
	if err != nil {
		t.Fatal(err)
	}
	want := model.Counts{Total: 4, Unique: 4, Changed: 2, Failed: 1, Skipped: 1, Refreshed: 1, Unmet: 1}
	if sum.Counts != want || sum.StartTime.IsZero() || sum.EndTime.Before(sum.StartTime) {
		t.Fatalf("%+v", sum)
	}
	if _, err := engine.OpenSession(w.opts.Env.Host, dir+"/none"); !errors.Is(err, engine.ErrNoSession) {
		t.Fatal(err)
	}
}

func TestLogLine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	tx := &model.Transaction{Type: "file", Name: "/etc/motd", RequestedEnsure: "present", Provider: "posix", Changed: true, Duration: 3 * time.Millisecond}
	engine.LogTransaction(t.Context(), log, tx)
	contains(t, out.String(), "level=WARN", `msg="file#/etc/motd changed"`, "ensure=present", "runtime=3ms", "provider=posix")
}

func TestSessionTouchesOnlyWhatIsItsOwn(t *testing.T) {
	h := hosttest.New(t)
	other := t.TempDir()
	keep := filepath.Join(other, "keep")
	if err := os.WriteFile(keep, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.OpenSession(h, other); !errors.Is(err, engine.ErrNoSession) {
		t.Fatalf("a directory that is no session was opened: %v", err)
	}
	if _, err := engine.NewSession(t.Context(), h, other); !errors.Is(err, engine.ErrNoSession) {
		t.Fatalf("a directory that is not empty was made a session: %v", err)
	}
	dir := filepath.Join(other, "session")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := engine.NewSession(t.Context(), h, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), &model.Transaction{EventID: ksuid.New().String(), Type: "thing", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(); err == nil {
		t.Fatal("a session with a file of somebody else was removed whole")
	}
	for _, path := range []string{keep, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutputOfASensitiveResourceIsNotInItsError(t *testing.T) {
	w := newWorld(t)
	w.run(w.graph("thing a value=1 fail_at=said sensitive=true", "thing b value=1 fail_at=said"))
	contains(t, w.txs["thing#b"].Errors[0], "it failed: generated-password")
	contains(t, w.txs["thing#a"].Errors[0], "it failed: "+model.Redacted)
}

func TestSecretsOfTheDocumentAreHiddenInWhatOthersSay(t *testing.T) {
	w := newWorld(t)
	w.opts.Secrets = []model.Secret{model.NewSecret("generated-password")}
	w.run(w.graph("thing b value=1 fail_at=said"))
	contains(t, w.txs["thing#b"].Errors[0], "it failed: "+model.Redacted)
}
