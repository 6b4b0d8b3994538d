package typetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// subject is one resource on its way through the contract.
type subject struct {
	config   Config
	each     Case
	dir      string
	typ      *resource.Type
	env      resource.Env
	provider resource.Provider
	spec     resource.Spec
	together bool
	// commands returns those that were started since it was last asked.
	commands func() []string
	broken   []string
}

func (s *subject) breach(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

func (s *subject) decode(t testing.TB) resource.Spec {
	t.Helper()
	r, problems := resource.Decode(s.typ, Value(s.each.Properties(s.dir)), model.Position{})
	if err := problems.Err(); err != nil {
		t.Fatalf("the case's properties are not valid: %v", err)
	}

	return r.Spec
}

// look reads the state and computes the plan. Neither may change anything. It returns a non-empty plan.
func (s *subject) look(t testing.TB) (resource.Plan, bool) {
	t.Helper()
	if s.typ.PreparesFirst() {
		if err := s.typ.Prepare(t.Context(), s.env, s.provider, []resource.Spec{s.spec}); err != nil {
			s.breach("Prepare: %v", err)
		}
	}
	before := hosttest.Snapshot(t, s.dir)
	s.commands()
	state, err := s.state(t, s.each.Refresh)
	var plan resource.Plan
	if err == nil {
		s.checkState(state)
		plan, err = s.plan(t, state)
	}
	if changes := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir)); len(changes) > 0 {
		s.breach("looking changed the machine: %s", strings.Join(changes, "; "))
	}
	s.checkStatusAll(t, state)
	s.trace("looking", s.config.ReadOnly)

	return plan, s.expected(plan, err)
}

// trace judges the commands that were started since it was last called.
func (s *subject) trace(what string, may func(command string) bool) {
	for _, command := range s.commands() {
		if may == nil || !may(command) {
			s.breach("%s started %q", what, command)
		}
	}
}

// expected compares the plan with the case and reports whether to continue.
func (s *subject) expected(plan resource.Plan, err error) bool {
	switch {
	case err != nil && s.each.Error == "":
		s.breach("unexpected error: %v", err)
	case err != nil && !strings.Contains(err.Error(), s.each.Error):
		s.breach("the error is %q, without %q", err, s.each.Error)
	case err == nil && s.each.Error != "":
		s.breach("no error, where one with %q was to be", s.each.Error)
	case err == nil && plan.Message() != s.each.Message:
		s.breach("noop says %q, not %q", plan.Message(), s.each.Message)
	case err == nil && plan.Empty() != (plan.Message() == ""):
		s.breach("the changes have no words: %+v", plan.Changes)
	}

	return err == nil && !plan.Empty() && len(s.broken) == 0
}

// state is what the machine says, with the answers of the guards.
func (s *subject) state(t testing.TB, refresh bool) (resource.State, error) {
	t.Helper()
	state, err := s.typ.Status(t.Context(), s.env, s.provider, s.spec)
	if err == nil && s.typ.EvalGuards != nil && s.typ.HasGuards(s.spec, state, refresh) {
		state, err = s.typ.EvalGuards(t.Context(), s.env, s.provider, s.spec, state)
	}

	return state, err
}

// plan computes the plan twice. Both must be equal, and an independent observation must find the machine
// unchanged.
func (s *subject) plan(t testing.TB, state resource.State) (resource.Plan, error) {
	t.Helper()
	s.trace("looking", s.config.ReadOnly)
	first, err := s.typ.Plan(s.spec, state, s.each.Refresh)
	second, again := s.typ.Plan(s.spec, state, s.each.Refresh)
	s.trace("Plan", nil)
	if !reflect.DeepEqual(first, second) || fmt.Sprint(err) != fmt.Sprint(again) {
		s.breach("Plan is not pure: it gave %+v, %v and then %+v, %v", first, err, second, again)
	}
	if other, lookErr := s.state(t, s.each.Refresh); lookErr != nil || !reflect.DeepEqual(other, state) {
		s.breach("the state is not the same after Plan: %+v, %+v, %v", state, other, lookErr)
	}
	if other := s.decode(t); !reflect.DeepEqual(other, s.spec) {
		s.breach("Plan changed the properties: %+v, not %+v", s.spec, other)
	}

	return first, err
}

func (s *subject) checkState(state resource.State) {
	common := state.State()
	if common.Ensure == "" {
		s.breach("the state has no ensure")
	}
	document, err := json.Marshal(state)
	if err == nil {
		err = json.Unmarshal(document, s.typ.NewState())
	}
	if err != nil {
		s.breach("the state is no JSON document that can be read again: %v", err)
	}
}

// checkStatusAll compares the answer to the one question with that to the many.
func (s *subject) checkStatusAll(t testing.TB, state resource.State) {
	t.Helper()
	if s.typ.StatusAll == nil || s.typ.EvalGuards != nil || state == nil {
		return
	}
	states, errs := s.typ.StatusAll(t.Context(), s.env, s.provider, []resource.Spec{s.spec, s.spec})
	if len(states) != 2 || len(errs) != 2 {
		s.breach("StatusAll gave %d states and %d errors for 2 resources", len(states), len(errs))
		return
	}
	for i := range states {
		if errs[i] != nil || !reflect.DeepEqual(states[i], state) {
			s.breach("StatusAll says %+v, %v, where Status says %+v", states[i], errs[i], state)
		}
	}
}
