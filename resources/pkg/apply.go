package pkg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Apply makes the one change of a plan. A change that leaves the version as it
// was is none.
func (t *Type) Apply(ctx context.Context, env resource.Env, p PackageProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	var outcome resource.Outcome
	err := t.locked(ctx, func() error {
		refreshLists(ctx, env, p, spec)
		failed := apply(ctx, env, p, spec, Action(plan.Changes[0].Action))
		if failed != nil && (ctx.Err() != nil || errors.Is(failed, ErrLocked)) {
			return failed
		}
		after, err := p.Status(ctx, env, spec.Name)
		switch {
		case failed != nil && (err != nil || !t.achieved(p, spec, plan, after)):
			return failed
		case failed != nil:
			env.Log.WarnContext(ctx, "package is in its desired state despite an error", "package", spec.Name, "error", failed)
		case err != nil:
			return err
		}
		outcome = outcomeOf(plan, after)
		return nil
	})

	return outcome, err
}

// achieved reports whether a failed change did its work for this package: the
// failed script was another package's.
func (t *Type) achieved(p PackageProvider, spec *Spec, plan resource.Plan, after *State) bool {
	state, err := stateFor(p, spec, after, "")

	return err == nil && state.Ensure != plan.Changes[0].From && t.Verify(spec, resource.Outcome{}, state) == nil
}

// refreshLists refreshes the lists when this run changed the repositories and a
// package asks for refreshes. Without it the change itself shows whether the
// lists suffice.
func refreshLists(ctx context.Context, env resource.Env, p PackageProvider, specs ...*Spec) {
	if !slices.ContainsFunc(specs, func(s *Spec) bool { return s.CacheMaxAge > 0 }) {
		return
	}
	if err := p.Refresh(ctx, env, Following, false); err != nil {
		warn(ctx, env, p, err)
	}
}

func apply(ctx context.Context, env resource.Env, p PackageProvider, spec *Spec, action Action) error {
	switch action {
	case Install:
		return p.Install(ctx, env, spec.Name, spec.Ensure)
	case Upgrade:
		return p.Upgrade(ctx, env, spec.Name, spec.Ensure)
	case Downgrade:
		return p.Downgrade(ctx, env, spec.Name, spec.Ensure)
	case Uninstall:
		return p.Uninstall(ctx, env, spec.Name)
	default:
		return fmt.Errorf("unknown action %q", action)
	}
}

// ApplyAll changes many packages in one transaction.
func (t *Type) ApplyAll(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec, plans []resource.Plan) ([]resource.Outcome, error) {
	requests, outcomes := make([]Request, len(specs)), make([]resource.Outcome, len(specs))
	for i, s := range specs {
		requests[i] = Request{Action: Action(plans[i].Changes[0].Action), Name: s.Name, Version: s.Ensure}
	}
	err := t.locked(ctx, func() error {
		refreshLists(ctx, env, p, specs...)
		if err := p.ChangeAll(ctx, env, requests); err != nil {
			return err
		}
		names := distinct(specs, func(*Spec) bool { return true })
		states, err := p.StatusAll(ctx, env, names)
		if err != nil {
			return err
		}
		after := map[string]*State{}
		for _, state := range states {
			after[state.Name] = state
		}
		for i, s := range specs {
			outcomes[i] = outcomeOf(plans[i], after[s.Name])
		}
		return nil
	})

	return outcomes, err
}

func outcomeOf(plan resource.Plan, after *State) resource.Outcome {
	out := resource.Outcome{Before: plan.Changes[0].From, After: after.Ensure, Unchanged: plan.Changes[0].From == after.Ensure}
	if out.Before == model.EnsureAbsent {
		out.Before = ""
	}
	if !after.installed() {
		out.After = ""
	}

	return out
}
