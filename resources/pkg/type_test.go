package pkg_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// store is a package manager in memory that records its calls.
type store struct {
	installed, candidates map[string]string
	held                  []string
	calls                 []string
	fails                 error
	broken                map[string]string
	residue               bool
	// takes are the packages that go with another, refused those that fail for an error.
	takes   map[string]string
	refused map[string]error
}

func newStore(installed, candidates map[string]string) *store {
	return &store{installed: installed, candidates: candidates}
}

func (*store) VersionCmp(a, b string) (int, error) { return apt.New().VersionCmp(a, b) }

func (*store) Watches() []watch.Point { return nil }

func (*store) CheckHolds(context.Context, resource.Env) error { return nil }

func (*store) CheckAbsent(context.Context, resource.Env, []string) (map[string]error, error) {
	return nil, nil
}

func (s *store) Name() string { return "store" }

func (s *store) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

func (s *store) StatusAll(_ context.Context, _ resource.Env, names []string) ([]*pkg.State, error) {
	s.calls = append(s.calls, "status "+strings.Join(names, " "))
	var out []*pkg.State
	for _, name := range names {
		state := pkg.NewState(name, nil)
		if v := s.installed[name]; v != "" {
			state = pkg.NewState(name, &pkg.Metadata{Name: name, Version: v, Full: v})
		}
		state.Held, state.Broken = slices.Contains(s.held, name), s.broken[name]
		state.Residue = s.residue
		out = append(out, state)
	}

	return out, nil
}

func (s *store) Candidates(_ context.Context, _ resource.Env, names []string, _ string) (map[string]string, error) {
	s.calls = append(s.calls, "candidates "+strings.Join(names, " "))
	return s.candidates, s.fails
}

func (s *store) ChangeAll(_ context.Context, _ resource.Env, requests []pkg.Request) error {
	for _, r := range requests {
		s.calls = append(s.calls, strings.TrimSpace(string(r.Action)+" "+r.Name+" "+r.Version))
		delete(s.broken, r.Name)
		switch {
		case r.Action == pkg.Hold:
			s.held = append(s.held, r.Name)
		case r.Action == pkg.Unhold:
			s.held = slices.DeleteFunc(s.held, func(name string) bool { return name == r.Name })
		case r.IsRemoval():
			delete(s.installed, r.Name)
			s.residue = s.residue && r.Action != pkg.Purge
		case r.Version == pkg.EnsureLatest || r.Version == model.EnsurePresent:
			s.installed[r.Name] = s.candidates[r.Name]
		default:
			s.installed[r.Name] = r.Version
		}
	}
	return s.fails
}

func (s *store) Simulate(_ context.Context, _ resource.Env, requests []pkg.Request) ([]pkg.Package, error) {
	call := "simulate"
	var out []pkg.Package
	for _, r := range requests {
		call += " " + r.Name
	}
	s.calls = append(s.calls, call)
	for _, r := range requests {
		if err := s.refused[r.Name]; err != nil {
			return nil, err
		}
		if name := s.takes[r.Name]; name != "" {
			out = append(out, pkg.Package{Names: []string{name}, Version: s.installed[name]})
		}
	}

	return out, nil
}

func (s *store) Refresh(_ context.Context, _ resource.Env, maxAge time.Duration, latest bool) error {
	s.calls = append(s.calls, "refresh "+maxAge.String())
	return s.fails
}

func decode(t *testing.T, typ *resource.Type, name, ensure string, more ...string) resource.Spec {
	t.Helper()
	p := typetest.Properties{"name": name, "ensure": ensure}
	for i := 0; i+1 < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	r, problems := resource.Decode(typ, typetest.Value(p), model.Position{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}

	return r.Spec
}

func env(t *testing.T, run string) resource.Env {
	t.Helper()
	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), RunEnv: []string{run}}
}

// TestDecisions covers the decision table, the words of noop, which method of the
// provider is called, and the desired state afterwards.
func TestDecisions(t *testing.T) {
	for _, c := range []struct{ ensure, have, candidate, message, call, after string }{
		{"present", "1.0", "2.0", "", "", "1.0"},
		{"present", "", "2.0", "Would have installed", "install p present", "2.0"},
		{"absent", "", "2.0", "", "", ""},
		{"absent", "1.0", "2.0", "Would have uninstalled", "uninstall p absent", ""},
		{"latest", "", "2.0", "Would have installed latest", "install p latest", "2.0"},
		{"latest", "1.0", "2.0", "Would have upgraded to latest", "upgrade p latest", "2.0"},
		{"latest", "2.0", "2.0", "", "", "2.0"},
		{"latest", "3.0", "2.0", "", "", "3.0"},
		{"1.5", "1.5", "2.0", "", "", "1.5"},
		{"1.5", "1.0", "2.0", "Would have upgraded to 1.5", "upgrade p 1.5", "1.5"},
		{"1.5", "2.0", "2.0", "Would have downgraded to 1.5", "downgrade p 1.5", "1.5"},
		{"1.5", "", "2.0", "Would have installed version 1.5", "install p 1.5", "1.5"},
	} {
		t.Run(c.ensure+", "+c.have, func(t *testing.T) {
			s := newStore(map[string]string{"p": c.have}, map[string]string{"p": c.candidate})
			typ, e := pkg.New(s), env(t, "1")
			spec := decode(t, typ, "p", c.ensure)
			state, err := typ.Status(t.Context(), e, s, spec)
			if err != nil {
				t.Fatal(err)
			}
			if want := c.have; (want == "" && state.State().Ensure != "absent") || (want != "" && state.State().Ensure != want) {
				t.Errorf("the state's ensure is %q", state.State().Ensure)
			}
			plan, err := typ.Plan(spec, state, false)
			if err != nil || plan.Message() != c.message {
				t.Fatalf("%q, %v", plan.Message(), err)
			}
			if plan.Empty() {
				return
			}
			if typ.Verify(spec, resource.Outcome{}, state) == nil && c.ensure != "latest" {
				t.Error("the state of before is taken for the desired one")
			}
			s.calls = nil
			outcome, err := typ.Apply(t.Context(), e, s, spec, plan)
			if err != nil || s.calls[0] != c.call || len(s.calls) != 2 {
				t.Errorf("%q, %v", s.calls, err)
			}
			if want := (resource.Outcome{Before: c.have, After: c.after}); !reflect.DeepEqual(outcome, want) {
				t.Errorf("the outcome is %+v, not %+v", outcome, want)
			}
			after, err := typ.Status(t.Context(), e, s, spec)
			if err != nil || typ.Verify(spec, outcome, after) != nil {
				t.Errorf("%+v, %v, %v", after, err, typ.Verify(spec, outcome, after))
			}
			if got := typ.Outputs(spec, after, outcome)["version"]; got != c.after {
				t.Errorf("the output is %q", got)
			}
		})
	}
}

// TestLatest covers what the decision table cannot: an unknown candidate is asked
// of the package manager, and a version that stayed is no change.
func TestLatest(t *testing.T) {
	s := newStore(map[string]string{"p": "1.0"}, nil)
	typ, e := pkg.New(s), env(t, "1")
	spec := decode(t, typ, "p", "latest")
	state, err := typ.Status(t.Context(), e, s, spec)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := typ.Plan(spec, state, false)
	if err != nil || plan.Message() != "Would have upgraded to latest" || plan.Changes[0].To != "latest" {
		t.Fatalf("%+v, %v", plan, err)
	}
	s.candidates = map[string]string{"p": "1.0"}
	outcome, err := typ.Apply(t.Context(), e, s, spec, plan)
	if err != nil || !outcome.Unchanged {
		t.Errorf("%+v, %v", outcome, err)
	}
}

// TestItsOwnScript fails an installed package if its script fails, but not if a script of another
// package fails.
func TestItsOwnScript(t *testing.T) {
	for name, fails := range map[string]bool{"p": true, "q": false} {
		s := newStore(map[string]string{}, map[string]string{"p": "1.0"})
		typ, e := pkg.New(s), env(t, "1")
		spec := decode(t, typ, "p", "present")
		state, err := typ.Status(t.Context(), e, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := typ.Plan(spec, state, false)
		if err != nil {
			t.Fatal(err)
		}
		s.fails = &pkg.Failure{Cause: "no", Err: pkg.ErrScript, Packages: []string{name}}
		if outcome, err := typ.Apply(t.Context(), e, s, spec, plan); (err != nil) != fails || errors.Is(err, pkg.ErrScript) != fails {
			t.Errorf("the script of %s: %+v, %v", name, outcome, err)
		}
	}
}

// TestTwoScripts shows the output of each of two failed scripts in the error of its package.
func TestTwoScripts(t *testing.T) {
	argv, script := []string{"dnf", "install", "-y", "a", "b"}, pkg.Remedy{Says: regexp.MustCompile(`(?m)^failed: (\S+)$`), Err: pkg.ErrScript, Do: "fix it"}
	said := command.Result{ExitCode: 1, Stdout: command.Output{Head: []byte("no disk\nfailed: a\nno user\nfailed: b\n")}}
	s := newStore(map[string]string{}, map[string]string{"a": "1.0", "b": "1.0", "c": "1.0"})
	s.fails = pkg.Explain(argv, said, []pkg.Remedy{script})
	typ, e := pkg.New(s), env(t, "1")
	specs := []resource.Spec{decode(t, typ, "a", "present"), decode(t, typ, "b", "present"), decode(t, typ, "c", "present")}
	_, err := typ.ApplyAll(t.Context(), e, s, specs, plansOf(t, typ, e, s, specs))
	var batch resource.BatchError
	if !errors.As(err, &batch) || batch[2] != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"no disk\nfailed: a", "no user\nfailed: b"} {
		if got := batch[i]; got == nil || !strings.HasSuffix(got.Error(), "fix it:\n"+want) {
			t.Errorf("%v, not with %q", got, want)
		}
	}
}

// TestWarnings names only packages that are gone, and does not repeat the error of the only package.
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		gone, done bool
		want       []string
	}{
		"the change failed": {},
		"it removed others": {gone: true, done: true, want: []string{"other packages were removed", "error about other packages"}},
	} {
		s := newStore(map[string]string{"x": "3"}, map[string]string{"p": "1.0"})
		s.takes = map[string]string{"p": "x"}
		typ, e := pkg.New(s), env(t, "1")
		var text bytes.Buffer
		e.Log = slog.New(slog.NewTextHandler(&text, nil))
		specs := []resource.Spec{decode(t, typ, "p", "present")}
		plans := plansOf(t, typ, e, s, specs)
		if s.fails = (&pkg.Failure{Cause: "no", Err: pkg.ErrScript, Packages: []string{"q"}}); c.gone {
			delete(s.installed, "x")
		}
		if !c.done {
			s.candidates = nil
		}
		var batch resource.BatchError
		if _, err := typ.ApplyAll(t.Context(), e, s, specs, plans); !errors.As(err, &batch) || (batch[0] == nil) != c.done {
			t.Errorf("%s: %v", name, err)
		}
		for _, w := range []string{"other packages were removed", "error about other packages"} {
			if strings.Contains(text.String(), w) != slices.Contains(c.want, w) {
				t.Errorf("%s: %s", name, text.String())
			}
		}
	}
}

func plansOf(t *testing.T, typ *resource.Type, e resource.Env, s *store, specs []resource.Spec) []resource.Plan {
	t.Helper()
	states, errs := typ.StatusAll(t.Context(), e, s, specs)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var plans []resource.Plan
	for i, spec := range specs {
		plan, err := typ.Plan(spec, states[i], false)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}

	return plans
}

// TestWhatFailedBesidesIt judges a failed change by its result: the script of another package may have
// failed.
func TestWhatFailedBesidesIt(t *testing.T) {
	for name, c := range map[string]struct {
		ensure, candidate string
		fails             error
		reached           bool
	}{
		"present":              {ensure: "present", candidate: "2.0", fails: pkg.ErrScript, reached: true},
		"a version":            {ensure: "1.5", fails: pkg.ErrScript, reached: true},
		"absent":               {ensure: "absent", fails: pkg.ErrScript, reached: true},
		"latest":               {ensure: "latest", candidate: "2.0", fails: pkg.ErrScript, reached: true},
		"latest, as before":    {ensure: "latest", candidate: "1.0", fails: pkg.ErrScript},
		"not there":            {ensure: "present", fails: pkg.ErrScript},
		"others hold the lock": {ensure: "1.5", fails: pkg.ErrLocked},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(map[string]string{"p": "1.0"}, nil)
			if c.ensure == "present" {
				s.installed = map[string]string{}
			}
			typ, e := pkg.New(s), env(t, "1")
			spec := decode(t, typ, "p", c.ensure)
			state, err := typ.Status(t.Context(), e, s, spec)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := typ.Plan(spec, state, false)
			if err != nil {
				t.Fatal(err)
			}
			s.candidates, s.fails = map[string]string{"p": c.candidate}, c.fails
			outcome, err := typ.Apply(t.Context(), e, s, spec, plan)
			if c.reached != (err == nil) || c.reached && outcome.Unchanged || err != nil && !errors.Is(err, c.fails) {
				t.Errorf("%+v, %v", outcome, err)
			}
		})
	}
}

func TestHeld(t *testing.T) {
	s := newStore(map[string]string{"p": "1.0"}, map[string]string{"p": "2.0"})
	s.held = []string{"p"}
	typ, e := pkg.New(s), env(t, "1")
	for ensure, refused := range map[string]bool{"present": false, "1.0": false, "latest": true, "2.0": true, "0.9": true, "absent": true} {
		spec := decode(t, typ, "p", ensure)
		state, err := typ.Status(t.Context(), e, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = typ.Plan(spec, state, false); errors.Is(err, pkg.ErrHeld) != refused {
			t.Errorf("%s: %v", ensure, err)
		}
	}
}

// TestTogether asks and changes many with one call each.
func TestTogether(t *testing.T) {
	s := newStore(map[string]string{"a": "1.0", "b": "1.0", "c": "1.0"}, map[string]string{"b": "2.0", "d": "2.0"})
	typ, e := pkg.New(s), env(t, "1")
	specs := []resource.Spec{decode(t, typ, "a", "absent"), decode(t, typ, "b", "latest"), decode(t, typ, "c", "0.9"), decode(t, typ, "d", "latest"), decode(t, typ, "d", "present")}
	states, errs := typ.StatusAll(t.Context(), e, s, specs)
	if want := []string{"status a b c d", "candidates b d", "simulate a b c d d"}; !slices.Equal(s.calls, want) || errors.Join(errs...) != nil {
		t.Fatalf("%q, %v", s.calls, errs)
	}
	var plans []resource.Plan
	for i, spec := range specs {
		plan, err := typ.Plan(spec, states[i], false)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}
	s.calls = nil
	outcomes, err := typ.ApplyAll(t.Context(), e, s, specs[:4], plans[:4])
	want := []string{"uninstall a absent", "upgrade b latest", "downgrade c 0.9", "install d latest", "status a b c d"}
	if err != nil || !slices.Equal(s.calls, want) {
		t.Errorf("%q, %v", s.calls, err)
	}
	if want := []resource.Outcome{{Before: "1.0"}, {Before: "1.0", After: "2.0"}, {Before: "1.0", After: "0.9"}, {After: "2.0"}}; !reflect.DeepEqual(outcomes, want) {
		t.Errorf("%+v, not %+v", outcomes, want)
	}
	s.fails = errors.New("no")
	if _, errs := typ.StatusAll(t.Context(), e, s, specs[:2]); errs[0] == nil || errs[1] == nil {
		t.Errorf("no error of each: %v", errs)
	}
	if _, err := typ.ApplyAll(t.Context(), e, s, specs[:2], plans[:2]); !errors.Is(err, s.fails) {
		t.Error(err)
	}
}

// TestForeseen simulates the changes that are due, all at once where none fails
// and nothing goes along.
func TestForeseen(t *testing.T) {
	named := func(err error, packages ...string) error {
		return &pkg.Failure{Cause: "no", Err: err, Do: "x", Packages: packages}
	}
	errOdd := errors.New("odd") // of a package manager that does not work at all
	for name, c := range map[string]struct {
		want    []string // ensure of a, b, c; all are installed but c
		takes   map[string]string
		refused map[string]error
		calls   []string
		removes []string // of each
		fails   []error
	}{
		"nothing due":          {want: []string{"present", "present"}},
		"all well":             {want: []string{"absent", "present", "present"}, calls: []string{"simulate a c"}},
		"one goes along":       {want: []string{"absent"}, takes: map[string]string{"a": "x"}, calls: []string{"simulate a"}, removes: []string{"package:x"}},
		"whose is it":          {want: []string{"absent", "absent", "present"}, takes: map[string]string{"b": "x"}, calls: []string{"simulate a b c", "simulate a", "simulate a b c", "simulate a b", "simulate a b c"}, removes: []string{"", "package:x"}},
		"one is named":         {want: []string{"absent", "absent", "present"}, refused: map[string]error{"b": named(pkg.ErrHeld, "b")}, calls: []string{"simulate a b c", "simulate a c"}, fails: []error{nil, pkg.ErrHeld}},
		"none is named":        {want: []string{"absent", "absent", "present"}, refused: map[string]error{"b": named(pkg.ErrUnmet, "lib")}, calls: []string{"simulate a b c", "simulate a", "simulate a b c", "simulate a b", "simulate a c"}, fails: []error{nil, pkg.ErrUnmet}},
		"alone":                {want: []string{"present", "present", "present"}, refused: map[string]error{"c": named(pkg.ErrNoPackage)}, calls: []string{"simulate c"}, fails: []error{nil, nil, pkg.ErrNoPackage}},
		"it cannot be told":    {want: []string{"absent", "absent"}, refused: map[string]error{"a": named(pkg.ErrNotRoot)}, calls: []string{"simulate a b"}},
		"it cannot be, either": {want: []string{"absent", "absent"}, takes: map[string]string{"a": "x"}, refused: map[string]error{"b": errOdd}, calls: []string{"simulate a b"}, fails: []error{errOdd, errOdd}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(map[string]string{"a": "1.0", "b": "1.0", "x": "3"}, nil)
			s.takes, s.refused = c.takes, c.refused
			typ, e := pkg.New(s), env(t, "1")
			var specs []resource.Spec
			for i, ensure := range c.want {
				specs = append(specs, decode(t, typ, string(rune('a'+i)), ensure))
			}
			states, errs := typ.StatusAll(t.Context(), e, s, specs)
			if err := errors.Join(errs...); err != nil || !slices.Equal(s.calls[1:], c.calls) {
				t.Fatalf("%v, %q, not %q", err, s.calls, c.calls)
			}
			for i, spec := range specs {
				plan, err := typ.Plan(spec, states[i], false)
				var want error
				if i < len(c.fails) {
					want = c.fails[i]
				}
				removes := ""
				if i < len(c.removes) {
					removes = c.removes[i]
				}
				if err != nil || !errors.Is(plan.Fails, want) || want == nil && plan.Fails != nil || strings.Join(plan.Removes, " ") != removes {
					t.Errorf("%s: %+v, %v", spec.Meta().Name, plan, err)
				}
				if want != nil && !slices.Contains(resource.Prerequisites(plan.Fails), "path:/etc/apt/sources.list.d/") {
					t.Errorf("%s: no repository would help", spec.Meta().Name)
				}
				if removes != "" && (plan.Message() != "Would have uninstalled. Would have uninstalled x too" || plan.Changes[1] != (model.Change{Action: "uninstall", Message: "Would have uninstalled x too", Property: "package#x", From: "3", To: "absent"})) {
					t.Errorf("%+v", plan)
				}
			}
		})
	}
}

// TestHold holds and releases packages, and changes held packages.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		ensure, have, hold string
		held               bool
		message, calls     string
	}{
		{"present", "1.0", "true", false, "Would have held", "hold p present"},
		{"present", "1.0", "true", true, "", ""},
		{"present", "1.0", "false", true, "Would have released", "unhold p present"},
		{"present", "1.0", "false", false, "", ""},
		{"present", "", "true", false, "Would have installed. Would have held", "install p present, hold p present"},
		{"2.0", "1.0", "true", true, "Would have upgraded to 2.0. Would have held", "upgrade p 2.0, hold p 2.0"},
		{"2.0", "1.0", "false", true, "Would have upgraded to 2.0. Would have released", "upgrade p 2.0, unhold p 2.0"},
		{"absent", "1.0", "false", true, "Would have uninstalled. Would have released", "uninstall p absent, unhold p absent"},
	} {
		s := newStore(map[string]string{"p": c.have}, map[string]string{"p": "2.0"})
		if c.held {
			s.held = []string{"p"}
		}
		typ, e := pkg.New(s), env(t, "1")
		spec := decode(t, typ, "p", c.ensure, "hold", c.hold)
		state, err := typ.Status(t.Context(), e, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := typ.Plan(spec, state, false)
		if err != nil || plan.Message() != c.message {
			t.Errorf("%+v: %q, %v", c, plan.Message(), err)
		}
		if plan.Empty() {
			continue
		}
		s.calls = nil
		if outcome, err := typ.Apply(t.Context(), e, s, spec, plan); err != nil || outcome.Unchanged || strings.Join(s.calls[:len(s.calls)-1], ", ") != c.calls {
			t.Errorf("%+v: %+v, %v, %q", c, outcome, err, s.calls)
		}
		after, err := typ.Status(t.Context(), e, s, spec)
		if err != nil || typ.Verify(spec, resource.Outcome{}, after) != nil {
			t.Errorf("%+v: %+v, %v, %v", c, after, err, typ.Verify(spec, resource.Outcome{}, after))
		}
	}
}

// TestPurged takes away what a removal leaves.
func TestPurged(t *testing.T) {
	for _, c := range []struct {
		have    string
		residue bool
		message string
	}{{"1.0", false, "Would have purged"}, {"", true, "Would have purged"}, {"", false, ""}} {
		s := newStore(map[string]string{"p": c.have}, nil)
		s.residue = c.residue
		typ, e := pkg.New(s), env(t, "1")
		spec := decode(t, typ, "p", "purged")
		state, err := typ.Status(t.Context(), e, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := typ.Plan(spec, state, false)
		if err != nil || plan.Message() != c.message || (typ.Verify(spec, resource.Outcome{}, state) == nil) != plan.Empty() {
			t.Errorf("%+v: %q, %v", c, plan.Message(), err)
		}
		if plan.Empty() {
			continue
		}
		if outcome, err := typ.Apply(t.Context(), e, s, spec, plan); err != nil || outcome.Unchanged || outcome.After != "" {
			t.Errorf("%+v: %+v, %v", c, outcome, err)
		}
	}
	if got := packageType().Relations(decode(t, packageType(), "vim", "purged")); got.Provides != nil {
		t.Errorf("a purged package provides %v", got.Provides)
	}
}

// TestBroken completes interrupted installations and changes nothing more.
func TestBroken(t *testing.T) {
	for _, c := range []struct{ broken, ensure, message, call string }{
		{"unpacked", "present", "Would have configured", "configure p 1.0"},
		{"half-configured", "1.0", "Would have configured", "configure p 1.0"},
		{"half-configured", "latest", "Would have configured", "configure p 1.0"},
		{"half-installed", "present", "Would have reinstalled", "reinstall p 1.0"},
		{"unpacked", "2.0", "Would have upgraded to 2.0", "upgrade p 2.0"},
		{"unpacked", "absent", "Would have uninstalled", "uninstall p absent"},
	} {
		s := newStore(map[string]string{"p": "1.0"}, map[string]string{"p": "1.0"})
		s.broken = map[string]string{"p": c.broken}
		typ, e := pkg.New(s), env(t, "1")
		spec := decode(t, typ, "p", c.ensure)
		state, err := typ.Status(t.Context(), e, s, spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := typ.Plan(spec, state, false)
		if err != nil || plan.Message() != c.message || typ.Verify(spec, resource.Outcome{}, state) == nil {
			t.Fatalf("%+v: %q, %v", c, plan.Message(), err)
		}
		s.calls = nil
		if outcome, err := typ.Apply(t.Context(), e, s, spec, plan); err != nil || outcome.Unchanged || s.calls[0] != c.call {
			t.Errorf("%+v: %+v, %v, %q", c, outcome, err, s.calls)
		}
	}
}

// TestPrepare covers when lists are refreshed, and the effect of a failed refresh.
func TestPrepare(t *testing.T) {
	s := newStore(map[string]string{"p": "1.0"}, map[string]string{"p": "1.0"})
	typ := pkg.New(s)
	plain, hour, day := decode(t, typ, "p", "present"), decode(t, typ, "p", "latest", "cache_max_age", "1h"), decode(t, typ, "q", "present", "cache_max_age", "24h")
	latest := decode(t, typ, "r", "latest")
	prepare := func(run string, specs ...resource.Spec) []string {
		t.Helper()
		s.calls = nil
		if err := typ.Prepare(t.Context(), env(t, run), s, specs); err != nil {
			t.Fatal(err)
		}
		return s.calls
	}
	for _, c := range []struct {
		run   string
		specs []resource.Spec
		want  []string
	}{
		{"1", []resource.Spec{plain}, nil},
		{"1", []resource.Spec{plain, day, hour}, []string{"refresh 1h0m0s"}},
		{"1", []resource.Spec{hour}, []string{"refresh " + pkg.Following.String()}},
		{"1", []resource.Spec{plain, latest}, nil},
		{"2", []resource.Spec{day}, []string{"refresh 24h0m0s"}},
		{"3", []resource.Spec{latest}, []string{"refresh 0s"}},
	} {
		if got := prepare(c.run, c.specs...); !slices.Equal(got, c.want) {
			t.Errorf("run %s: %q, not %q", c.run, got, c.want)
		}
	}
	s.fails = errors.New("no network")
	prepare("4", hour, day)
	s.fails = nil
	for _, c := range []struct {
		run  string
		spec resource.Spec
		says string
	}{{"4", hour, "the latest version is unknown: no network"}, {"4", day, ""}, {"4", latest, ""}, {"4", plain, ""}, {"5", hour, ""}} {
		_, err := typ.Status(t.Context(), env(t, c.run), s, c.spec)
		if (c.says == "") != (err == nil) || (err != nil && err.Error() != c.says) {
			t.Errorf("run %s, %s: %v", c.run, c.spec.Meta().Name, err)
		}
	}
}

func TestRelations(t *testing.T) {
	typ := packageType()
	for name, want := range map[string][]string{"vim": {"package:vim"}, "libc6:i386": {"package:libc6:i386", "package:libc6"}} {
		if got := typ.Relations(decode(t, typ, name, "present")); !slices.Equal(got.Provides, resource.Provides(want...)) || got.Needs != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := typ.Relations(decode(t, typ, "vim", "absent")); got.Provides != nil {
		t.Errorf("an absent package provides %v", got.Provides)
	}
}

// TestOnePackageUnderTwoNames has packages declared under every name that apt has for them.
func TestOnePackageUnderTwoNames(t *testing.T) {
	typ := packageType()
	for name, want := range map[string]string{"vim": "vim", "vim:all": "vim", "vim:" + pkg.Architecture(): "vim", "vim:sparc": "vim:sparc", "vim.noarch": "vim.noarch"} {
		if got := decode(t, typ, name, "present").(resource.CanonicalNamer).CanonicalName(); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
}
