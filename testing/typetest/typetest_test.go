package typetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// marker is a small type that keeps the contract: a file with a text in it.
// The funcs, where set, break one of its promises.
type marker struct {
	status func(spec *markerSpec)
	plan   func(spec *markerSpec, state *markerState)
	apply  func(spec *markerSpec) error
	verify func() error
	common func(*model.CommonState)
	// asks is a command that Status starts.
	asks []string
}

type (
	markerSpec struct {
		model.Common
		Text string `json:"text" jsonschema_description:"What is in it"`
	}
	markerState struct {
		model.CommonState
		Text string `json:"text"`
	}
	markerProvider struct{}
)

func (markerProvider) Name() string { return "plain" }

func (markerProvider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return true, 1, nil
}

func (*markerSpec) Validate() model.Problems { return nil }

func (marker) Info() resource.Info {
	return resource.Info{Name: "marker", Summary: "Markers", NameHelp: "a path", Ensures: []string{"present"}, Reads: resource.Paths}
}
func (marker) New() *markerSpec { return &markerSpec{} }

func (m marker) Status(ctx context.Context, env resource.Env, _ markerProvider, spec *markerSpec) (*markerState, error) {
	if m.asks != nil {
		if _, err := env.Host.Run(ctx, command.Command{Argv: m.asks}); err != nil {
			return nil, err
		}
	}
	if m.status != nil {
		m.status(spec)
	}
	text, err := os.ReadFile(spec.Name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	state := &markerState{Text: string(text)}
	state.CommonState = model.CommonState{Protocol: model.StateProtocol("marker"), ResourceType: "marker", Name: spec.Name, Ensure: "present"}
	if m.common != nil {
		m.common(&state.CommonState)
	}

	return state, nil
}

func (m marker) Plan(spec *markerSpec, state *markerState, _ bool) (plan resource.Plan, err error) {
	if state.Text != spec.Text {
		plan.Add(model.Change{Action: "write", Message: "Would have marked", From: state.Text, To: spec.Text})
	}
	if m.plan != nil {
		m.plan(spec, state)
	}

	return plan, nil
}

func (m marker) Apply(_ context.Context, _ resource.Env, _ markerProvider, spec *markerSpec, _ resource.Plan) (resource.Outcome, error) {
	if m.apply != nil {
		return resource.Outcome{}, m.apply(spec)
	}

	return resource.Outcome{}, os.WriteFile(spec.Name, []byte(spec.Text), 0o600)
}

// judged is a marker whose Verify accepts everything or nothing.
type judged struct{ marker }

func (j judged) Verify(*markerSpec, resource.Outcome, *markerState) error { return j.verify() }

// many is a marker with the methods for several at once.
type many struct {
	marker
	wrong bool
}

func (m many) StatusAll(ctx context.Context, env resource.Env, p markerProvider, specs []*markerSpec) ([]*markerState, []error) {
	states, errs := make([]*markerState, len(specs)), make([]error, len(specs))
	for i := range specs {
		states[i], errs[i] = m.Status(ctx, env, p, specs[i])
		if m.wrong && i > 0 {
			states[i].Text = "other"
		}
	}

	return states, errs
}

func (m many) ApplyAll(ctx context.Context, env resource.Env, p markerProvider, specs []*markerSpec, plans []resource.Plan) ([]resource.Outcome, error) {
	outcomes := make([]resource.Outcome, len(specs))
	for i := range specs {
		var err error
		if outcomes[i], err = m.Apply(ctx, env, p, specs[i], plans[i]); err != nil {
			return nil, err
		}
	}

	return outcomes, nil
}

// giving is a marker with optional outputs.
type giving struct {
	marker
	says []resource.Output
}

func (g giving) Info() resource.Info {
	info := g.marker.Info()
	info.Outputs = g.says

	return info
}

func (giving) Outputs(*markerSpec, *markerState, resource.Outcome) map[string]any {
	return map[string]any{"text": "x"}
}

func markerCase() Case {
	return Case{
		Name:       "marked",
		Properties: func(dir string) Properties { return Properties{"name": filepath.Join(dir, "m"), "text": "x"} },
		Message:    "Would have marked",
	}
}

// TestSuite runs the suite over types that keep the contract.
func TestSuite(t *testing.T) {
	Run(t, Config{Type: resource.Of(marker{}, markerProvider{}), Cases: []Case{markerCase()}})
	Run(t, Config{Type: resource.Of(marker{asks: []string{"true", "yes"}}, markerProvider{}), ReadOnly: Only("false", "true y"), Cases: []Case{markerCase()}})
	Run(t, Config{Type: resource.Of(many{}, markerProvider{}), Cases: []Case{markerCase()}})
	Run(t, Config{Type: resource.Of(giving{says: []resource.Output{{Name: "text", Help: "What is in it"}}}, markerProvider{}), Cases: []Case{markerCase()}})
}

// TestBreaches checks that the suite finds each way of breaking the contract.
func TestBreaches(t *testing.T) {
	dir := ""
	litter := func() { _ = os.WriteFile(filepath.Join(dir, "litter"), []byte("x"), 0o600) }
	calls := 0
	for name, c := range map[string]struct {
		typ  *resource.Type
		each func(*Case)
		says string
	}{
		"Status changes the machine":    {typ: resource.Of(marker{status: func(*markerSpec) { litter() }}, markerProvider{}), says: "litter: added"},
		"Plan changes the machine":      {typ: resource.Of(marker{plan: func(*markerSpec, *markerState) { litter() }}, markerProvider{}), says: "looking changed the machine"},
		"Plan changes the state":        {typ: resource.Of(marker{plan: func(_ *markerSpec, s *markerState) { s.Text = "y" }}, markerProvider{}), says: "the state is not the same after Plan"},
		"Plan changes the properties":   {typ: resource.Of(marker{plan: func(s *markerSpec, _ *markerState) { calls++; s.Text = strings.Repeat("z", calls) }}, markerProvider{}), says: "Plan is not pure"},
		"Plan gives what is its own":    {typ: resource.Of(marker{plan: func(s *markerSpec, _ *markerState) { s.Alias = "y" }}, markerProvider{}), says: "Plan changed the properties"},
		"Status starts what it may not": {typ: resource.Of(marker{asks: []string{"true", "no"}}, markerProvider{}), says: `looking started "true no"`},
		"Apply fails":                   {typ: resource.Of(marker{apply: func(*markerSpec) error { return errors.New("no") }}, markerProvider{}), says: "Apply: no"},
		"Apply does nothing":            {typ: resource.Of(marker{apply: func(*markerSpec) error { return nil }}, markerProvider{}), says: "Verify refuses what was done"},
		"never done":                    {typ: resource.Of(judged{marker{apply: func(*markerSpec) error { return nil }, verify: func() error { return nil }}}, markerProvider{}), says: "the next run would change it again"},
		"Verify believes a liar":        {typ: resource.Of(judged{marker{verify: func() error { return nil }}}, markerProvider{}), says: "Verify accepts what a lying provider left"},
		"Verify believes nobody":        {typ: resource.Of(judged{marker{verify: func() error { return errors.New("no") }}}, markerProvider{}), says: "Verify refuses what was done: no"},
		"StatusAll says other things":   {typ: resource.Of(many{wrong: true}, markerProvider{}), says: "StatusAll says"},
		"an output of no name":          {typ: resource.Of(giving{}, markerProvider{}), says: "it gives the output text"},
		"a state without ensure":        {typ: resource.Of(marker{common: func(s *model.CommonState) { s.Ensure = "" }}, markerProvider{}), says: "the state has no ensure"},
		"other words":                   {typ: resource.Of(marker{}, markerProvider{}), each: func(c *Case) { c.Message = "Would have" }, says: `noop says "Would have marked", not "Would have"`},
		"no error":                      {typ: resource.Of(marker{}, markerProvider{}), each: func(c *Case) { c.Error = "refused" }, says: `no error, where one with "refused" was to be`},
		"does not repeat":               {typ: resource.Of(marker{}, markerProvider{}), each: func(c *Case) { c.Repeats = true }, says: "the case says that it repeats"},
		"an error":                      {typ: resource.Of(marker{}, markerProvider{}), each: func(c *Case) { c.Properties = func(dir string) Properties { return Properties{"name": dir} } }, says: "unexpected error"},
	} {
		t.Run(name, func(t *testing.T) {
			dir = t.TempDir()
			each := markerCase()
			if c.each != nil {
				c.each(&each)
			}
			h, commands := hosttest.Traced(t)
			got := violations(t, Config{Type: c.typ}, each, h, commands, dir, false)
			if !strings.Contains(strings.Join(got, "\n"), c.says) {
				t.Errorf("found %q, without %q", got, c.says)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	typ := resource.Of(marker{}, markerProvider{})
	typ.Info = resource.Info{Outputs: []resource.Output{{}}}
	got := strings.Join(describe(typ), "\n")
	for _, part := range []string{"no name", "no summary", "no help for its name", "does not say what its states describe", "the outputs and what the type says", "no name for an output", "no help for its output", "no help for ensure"} {
		if !strings.Contains(got, part) {
			t.Errorf("nothing says %q: %s", part, got)
		}
	}
}

func TestValue(t *testing.T) {
	got := Value(Properties{"n": nil, "b": true, "s": "x", "i": 3, "l": []any{"a", 1.5}, "m": map[string]any{"k": []string{"v"}}}).Plain()
	want := map[string]any{"n": nil, "b": true, "s": "x", "i": 3, "l": []any{"a", 1.5}, "m": map[string]any{"k": []any{"v"}}}
	if !reflect.DeepEqual(got, any(want)) {
		t.Errorf("%#v, not %#v", got, want)
	}
}
