package typetest

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/resources/resource"
)

// change applies a plan and judges the result, and then the result of a provider that lies.
func (s *subject) change(t testing.TB, plan resource.Plan) {
	t.Helper()
	before, err := s.state(t, s.each.Refresh)
	if err != nil {
		s.breach("the state before: %v", err)
		return
	}
	outcome, err := s.apply(t, plan)
	if err != nil {
		s.breach("Apply: %v", err)
		return
	}
	after, err := s.typ.Status(t.Context(), s.env, s.provider, s.spec)
	if err != nil {
		s.breach("the state after: %v", err)
		return
	}
	if err := s.typ.Verify(s.spec, outcome, after); err != nil {
		s.breach("Verify refuses what was done: %v", err)
	}
	s.checkOutputs(after, outcome)
	s.settled(t)
	lie := func(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
		return outcome, before
	}
	if s.config.Lie != nil {
		lie = s.config.Lie
	}
	claimed, found := lie(before, outcome)
	if s.typ.Verify(s.spec, claimed, found) == nil {
		s.breach("Verify accepts what a lying provider left: %+v, %+v", claimed, found)
	}
	s.drift(t)
}

func (s *subject) apply(t testing.TB, plan resource.Plan) (resource.Outcome, error) {
	t.Helper()
	if !s.together {
		return s.typ.Apply(t.Context(), s.env, s.provider, s.spec, plan)
	}
	outcomes, err := s.typ.ApplyAll(t.Context(), s.env, s.provider, []resource.Spec{s.spec}, []resource.Plan{plan})
	if err != nil {
		return resource.Outcome{}, err
	}
	if len(outcomes) != 1 {
		s.breach("ApplyAll gave %d outcomes for 1 change", len(outcomes))
		return resource.Outcome{}, nil
	}

	return outcomes[0], nil
}

// checkOutputs compares the outputs with the declared ones.
func (s *subject) checkOutputs(state resource.State, outcome resource.Outcome) {
	if s.typ.Outputs == nil {
		return
	}
	for name := range s.typ.Outputs(s.spec, state, outcome) {
		if !slices.ContainsFunc(s.typ.Info.Outputs, func(o resource.Output) bool { return o.Name == name }) {
			s.breach("it gives the output %s, of which the type says nothing", name)
		}
	}
}

// settled looks again, as the next run would: nothing may be due.
func (s *subject) settled(t testing.TB) {
	t.Helper()
	state, err := s.state(t, false)
	if err != nil {
		s.breach("the next look: %v", err)
		return
	}
	plan, err := s.typ.Plan(s.spec, state, false)
	switch {
	case err != nil:
		s.breach("the next plan: %v", err)
	case !plan.Empty() && !s.each.Repeats:
		s.breach("the next run would change it again: %s", plan.Message())
	case plan.Empty() && s.each.Repeats && !s.each.Refresh:
		s.breach("the case says that it repeats, and it does not")
	}
}
