package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// machine is the machine of the test types: values by name, and a record of actions.
type machine struct {
	mu     sync.Mutex
	values map[string]string
	did    []string
	// environment is the environment of the last guard.
	environment []string
}

func newMachine() *machine { return &machine{values: map[string]string{}} }

func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did = append(m.did, fmt.Sprintf(format, args...))
}

func (m *machine) get(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name]
}

func (m *machine) set(name, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = value
}

// actions returns the recorded actions and clears them.
func (m *machine) actions() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.did
	m.did = nil
	return out
}

type spec struct {
	model.Common
	Value    string   `json:"value,omitempty" sensitive:"true"`
	FailAt   string   `json:"fail_at,omitempty"`
	Times    int      `json:"times,omitempty"` // number of failures of FailAt, 0 for all
	Provides []string `json:"provides,omitempty"`
	Along    []string `json:"along,omitempty"`
	Removes  []string `json:"removes,omitempty"`
	Unless   []string `json:"unless,omitempty"`
	Reads    []string `json:"reads,omitempty"`
	Makes    string   `json:"makes,omitempty"` // sets machine.values[Makes] to the value
	Needs    []string `json:"needs,omitempty"`
	Missing  string   `json:"missing,omitempty"` // the observation needs all these machine.values: a|b
	Or       string   `json:"or,omitempty"`      // an alternative need
	Guard    string   `json:"guard,omitempty"`
	File     string   `json:"file,omitempty"` // the file of a part
}

func (*spec) Validate() model.Problems { return nil }

func (s *spec) CanonicalName() string { return strings.TrimSuffix(s.Name, ".unit") }

type state struct {
	model.CommonState
	Value string `json:"value"`
	guard bool
}

type plain struct{}

func (plain) Name() string { return "plain" }

func (plain) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

type provider interface{ resource.Provider }

// thing sets machine.values[name] to its value. Its spec has more options.
type thing struct {
	m    *machine
	info resource.Info
	mu   *sync.Mutex
	left map[string]int
	hook func(event, name string)
}

func newThing(m *machine, name string, change func(*resource.Info)) thing {
	t := thing{m: m, mu: &sync.Mutex{}, left: map[string]int{}, info: resource.Info{
		Name: name, Ensures: []string{"present"}, Reads: resource.Paths, Writes: resource.Paths,
	}}
	if change != nil {
		change(&t.info)
	}
	return t
}

func (t thing) Info() resource.Info { return t.info }
func (thing) New() *spec            { return &spec{} }
func (t thing) event(what, n string) {
	if t.hook != nil {
		t.hook(what, n)
	}
}

// failing reports whether a resource fails at a step.
func (t thing) failing(s *spec, at string) error {
	if s.FailAt != at {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left[s.Name]++
	if s.Times > 0 && t.left[s.Name] > s.Times {
		return nil
	}
	return errors.New(at + " failed with " + s.Value)
}

func (t thing) Status(ctx context.Context, _ resource.Env, _ provider, s *spec) (*state, error) {
	t.event("status", s.Name)
	if s.FailAt == "hang-look" && (s.Guard == "" || t.m.get(s.Guard) != "") {
		t.event("hang", s.Name)
		<-ctx.Done()
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if s.FailAt == "panic" {
		panic("boom " + s.Name)
	}
	for _, missing := range strings.FieldsFunc(s.Missing, func(c rune) bool { return c == '|' }) {
		if s.FailAt != "plan-missing" && t.m.get(missing) == "" {
			return nil, resource.PrerequisiteError{Needs: []string{"value:" + missing, "value:" + s.Or}, Err: errors.New(missing + " is missing")}
		}
	}
	if err := t.failing(s, "status"); err != nil {
		return nil, err
	}
	v := t.m.get(s.Name)
	ensure := model.EnsurePresent
	if v == "" {
		ensure = model.EnsureAbsent
	}
	return &state{CommonState: model.CommonState{Ensure: ensure}, Value: v}, nil
}

func (t thing) Plan(s *spec, st *state, refresh bool) (resource.Plan, error) {
	p := resource.Plan{Unrefreshed: s.FailAt == "unrefreshed"}
	if s.FailAt == "plan" {
		return p, errors.New("plan failed")
	}
	if refresh && t.info.Refreshes && !p.Unrefreshed {
		p.Add(model.Change{Action: "refresh", Message: "Would have refreshed " + s.Name})
		return p, nil
	}
	if st.Value != s.Value {
		p.Add(model.Change{Action: "set", Message: "Would have set " + s.Name, Property: "value", From: st.Value, To: s.Value, Diff: "-" + st.Value + "\n+" + s.Value})
	}
	if s.FailAt == "plan-missing" {
		return p, resource.PrerequisiteError{Needs: []string{"value:" + s.Missing}, Err: errors.New(s.Missing + " is missing")}
	}
	return p, nil
}

func (t thing) Apply(ctx context.Context, env resource.Env, _ provider, s *spec, p resource.Plan) (resource.Outcome, error) {
	t.event("apply", s.Name)
	env.Log.Info("applying " + s.Value)
	if s.FailAt == "panic-apply" {
		panic("boom " + s.Name)
	}
	if s.FailAt == "said" {
		return resource.Outcome{}, resource.CommandError{Err: errors.New("it failed"), Output: "generated-password"}
	}
	if s.FailAt == "hang" {
		<-ctx.Done()
		return resource.Outcome{}, context.Cause(ctx)
	}
	if err := t.failing(s, "halfway"); err != nil {
		t.m.note("began %s", s.Name)
		return resource.Outcome{}, err
	}
	if err := t.failing(s, "apply"); err != nil {
		t.m.note("tried %s", s.Name)
		return resource.Outcome{Untouched: true}, err
	}
	outcome := resource.Outcome{Unchanged: s.FailAt == "unchanged"}
	if strings.HasPrefix(s.FailAt, "end") {
		outcome.AtEnd = func(ctx context.Context) error {
			t.m.note("end %s", s.Name)
			t.event("end", s.Name)
			if err := ctx.Err(); err != nil {
				return err
			}
			return t.failing(s, "end-fails")
		}
	}
	t.m.note("%s %s", p.Changes[0].Action, s.Name)
	if s.FailAt != "verify" {
		t.m.set(s.Name, s.Value)
		if s.Makes != "" {
			t.m.set(s.Makes, "made")
		}
	}
	return outcome, nil
}

// relating is a thing with relations.
type relating struct{ thing }

func (relating) Relations(s *spec) resource.Relations {
	out := resource.Relations{Provides: resource.Provides(append([]string{"value:" + s.Name}, s.Provides...)...), Needs: resource.Needs(s.Needs...), Removes: s.Removes, SkipIfExists: s.Unless}
	for _, what := range s.Along {
		out.Provides = append(out.Provides, resource.Provision{What: what, Implicit: true})
	}
	for _, what := range s.Reads {
		out.Needs = append(out.Needs, resource.Need{What: what, ReadsContent: true})
	}
	return out
}

// many is a thing that observes and changes many resources at once.
type many struct{ thing }

func (t many) StatusAll(ctx context.Context, env resource.Env, p provider, specs []*spec) ([]*state, []error) {
	t.m.note("look at %d", len(specs))
	states, errs := make([]*state, len(specs)), make([]error, len(specs))
	for i, s := range specs {
		states[i], errs[i] = t.Status(ctx, env, p, s)
		if settled := s.Name + " settled"; env.InTurn {
			t.m.set(settled, "1")
		} else if s.FailAt == "unsettled" && t.m.get(settled) == "" {
			states[i], errs[i] = nil, fmt.Errorf("it %w", resource.ErrUnsettled)
		}
	}
	return states, errs
}

func (t many) ApplyAll(ctx context.Context, env resource.Env, p provider, specs []*spec, plans []resource.Plan) ([]resource.Outcome, error) {
	if len(specs) == 1 {
		outcome, err := t.Apply(ctx, env, p, specs[0], plans[0])
		return []resource.Outcome{outcome}, err
	}
	t.m.note("change %d together", len(specs))
	if slices.ContainsFunc(specs, func(s *spec) bool { return s.FailAt == "together" }) {
		return nil, errors.New("not together")
	}
	out, failed := make([]resource.Outcome, len(specs)), make(resource.BatchError, len(specs))
	for i, s := range specs {
		if s.FailAt == "partly" {
			failed[i] = errors.New("not this one")
			continue
		}
		if s.FailAt == "timed-out" {
			failed[i] = fmt.Errorf("not this one: %w", resource.Concluded{Err: errors.New("it had its time")})
			continue
		}
		var err error
		if out[i], err = t.Apply(ctx, env, p, s, plans[i]); err != nil {
			return nil, err
		}
	}
	return out, failed.Err()
}

// part is one of many that manage parts of a file.
type part struct{ many }

func (part) Claims(s *spec) []resource.Claim {
	return []resource.Claim{{Kind: resource.ClaimPart, Path: s.File, ID: s.Name}}
}

// guarded is a thing with a guard, preparation and outputs.
type guarded struct{ thing }

func (t guarded) Prepare(_ context.Context, _ resource.Env, _ provider, specs []*spec) error {
	t.m.note("prepare %d", len(specs))
	return nil
}

func (guarded) Relations(s *spec) resource.Relations {
	return resource.Relations{Needs: resource.Needs(s.Needs...)}
}

func (guarded) HasGuards(s *spec, _ *state, _ bool) bool { return s.Guard != "" }

func (t guarded) EvalGuards(ctx context.Context, env resource.Env, _ provider, s *spec, st *state) (*state, error) {
	t.m.note("guard %s", s.Name)
	t.event("guard", s.Name)
	if s.FailAt == "hang-guard" {
		t.event("hang", s.Name)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	t.m.environment = env.RunEnv
	st.guard = t.m.get(s.Guard) != ""
	if s.Guard == "broken" {
		return nil, errors.New("the guard cannot be asked")
	}
	return st, nil
}

func (t guarded) Plan(s *spec, st *state, refresh bool) (resource.Plan, error) {
	if s.Guard != "" && !st.guard {
		return resource.Plan{}, nil
	}
	return t.thing.Plan(s, st, refresh)
}

func (guarded) Outputs(s *spec, st *state, _ resource.Outcome) map[string]any {
	return map[string]any{"value": st.Value}
}

// settling is a thing with a transitional state: machine.values["stale"] marks it until the type
// prepares, or forever if it is "always".
type settling struct{ many }

type settlingState struct {
	state
	stale bool
}

// NeedsReload reports whether the state was outdated.
func (s *settlingState) NeedsReload() bool { return s.stale }

func (t settling) settle(st *state, err error) (*settlingState, error) {
	if err != nil {
		return nil, err
	}
	return &settlingState{state: *st, stale: t.m.get("stale") != ""}, nil
}

func (t settling) Status(ctx context.Context, env resource.Env, p provider, s *spec) (*settlingState, error) {
	return t.settle(t.many.Status(ctx, env, p, s))
}

func (t settling) StatusAll(ctx context.Context, env resource.Env, p provider, specs []*spec) ([]*settlingState, []error) {
	states, errs := t.many.StatusAll(ctx, env, p, specs)
	out := make([]*settlingState, len(states))
	for i := range states {
		out[i], errs[i] = t.settle(states[i], errs[i])
	}
	return out, errs
}

func (t settling) Plan(s *spec, st *settlingState, refresh bool) (resource.Plan, error) {
	return t.many.Plan(s, &st.state, refresh)
}

func (t settling) Prepare(_ context.Context, env resource.Env, _ provider, specs []*spec) error {
	t.m.note("prepare %d", len(specs))
	if env.RunID == "" {
		return errors.New("the run has no id")
	}
	if t.m.get("stale") == "broken" {
		return errors.New("cannot prepare")
	}
	if t.m.get("stale") != "always" {
		t.m.set("stale", "")
	}
	return nil
}
