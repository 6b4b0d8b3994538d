package pkg

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// achieved reports whether a failed change had the wanted result for this package, because the script of
// another package failed.
func (t *Type) achieved(p PackageProvider, spec *Spec, plan resource.Plan, after *State) bool {
	state, err := stateFor(p, spec, after, "")

	return err == nil && state.Ensure != plan.Changes[0].From && t.Verify(spec, resource.Outcome{}, state) == nil
}

func requestsOf(spec *Spec, plan resource.Plan) []Request {
	var out []Request
	for _, change := range plan.Changes {
		if strings.HasPrefix(change.Property, along) {
			continue
		}
		r := Request{Action: Action(change.Action), Name: spec.Name, Version: spec.Ensure, Recommends: spec.Recommends, Release: spec.TargetRelease, Held: spec.Hold != nil}
		switch {
		case r.Action == Configure || r.Action == Reinstall:
			r.Version = change.To
		case spec.Ensure == EnsureLatest && change.To != EnsureLatest:
			r.Candidate = change.To
		}
		out = append(out, r)
	}

	return out
}

// along is the prefix of the property of a change to another package, a side effect of the requested change.
const along = "package#"

func removedAlong(plans []resource.Plan) []string {
	var removed []string
	for _, plan := range plans {
		for _, c := range plan.Changes {
			if name, ok := strings.CutPrefix(c.Property, along); ok && !slices.Contains(removed, name) {
				removed = append(removed, name)
			}
		}
	}

	return removed
}

func warnOfRemoved(ctx context.Context, env resource.Env, names []string, after map[string]*State) {
	removed := slices.DeleteFunc(names, func(name string) bool { return after[name] != nil && after[name].installed() })
	if len(removed) > 0 {
		env.Log.WarnContext(ctx, "other packages were removed", "removed", strings.Join(removed, " "))
	}
}

// ApplyAll changes packages in one transaction. After an error of several packages it reads the states only
// if a script failed; after other errors the engine changes the packages one by one. A change that
// leaves the version as it was is reported as unchanged.
func (t *Type) ApplyAll(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec, plans []resource.Plan) ([]resource.Outcome, error) {
	var requests []Request
	outcomes := make([]resource.Outcome, len(specs))
	for i, s := range specs {
		requests = append(requests, requestsOf(s, plans[i])...)
	}
	err := t.locked(ctx, func() error {
		failed := p.ChangeAll(ctx, env, requests)
		f, explained := errors.AsType[*Failure](failed)
		isScript := explained && f.Err == ErrScript
		if failed != nil && (ctx.Err() != nil || errors.Is(failed, ErrLocked) || len(specs) > 1 && !isScript) {
			return failed
		}
		names := distinct(specs, func(*Spec) bool { return true })
		removed := removedAlong(plans)
		states, err := p.StatusAll(ctx, env, append(names, removed...))
		if err != nil {
			return cmp.Or(failed, err)
		}
		after := byName(states)
		for i, s := range specs {
			if after[s.Name] == nil {
				return unreported(p, s.Name)
			}
			outcomes[i] = outcomeOf(plans[i], after[s.Name])
		}
		warnOfRemoved(ctx, env, removed, after)
		if failed != nil {
			return t.attribute(ctx, env, p, failed, specs, plans, after)
		}
		return nil
	})

	return outcomes, err
}

// attribute returns the errors of a transaction with failed scripts by package. A package fails
// with its own script, even in its desired state. Other packages in their desired state succeed;
// the rest fail, and are changed again one by one.
func (t *Type) attribute(ctx context.Context, env resource.Env, p PackageProvider, failed error, specs []*Spec, plans []resource.Plan, after map[string]*State) resource.BatchError {
	errs := make(resource.BatchError, len(specs))
	for i, s := range specs {
		own, done := about(failed, requestsOf(s, plans[i])[0]), t.achieved(p, s, plans[i], after[s.Name])
		switch {
		case own != nil && done:
			errs[i] = resource.Concluded{Err: own}
		case own != nil:
			errs[i] = own
		case !done:
			errs[i] = failed
		}
	}
	if errors.Join(errs...) == nil {
		env.Log.WarnContext(ctx, "the package manager reported an error about other packages", "error", failed)
	}

	return errs
}

func outcomeOf(plan resource.Plan, after *State) resource.Outcome {
	action, before := Action(plan.Changes[0].Action), plan.Changes[0].From
	out := resource.Outcome{At: after.ChangedAt, Before: before, After: after.Ensure, Unchanged: before == after.Ensure && action != Purge}
	switch {
	case action == Configure || action == Reinstall || action == Hold || action == Unhold:
		out.Before, out.Unchanged = after.Ensure, false
	case before == model.EnsureAbsent:
		out.Before = ""
	}
	if !after.installed() {
		out.After = ""
	}

	return out
}

// forecast is the effect of a package change: the packages that it also removes, or why it would
// fail.
type forecast struct {
	removed []Package
	err     error
}

func repositories() []string {
	return []string{resource.PathNeed("/etc/apt/sources.list"), resource.PathNeed("/etc/apt/sources.list.d/"), resource.PathNeed("/etc/yum.repos.d/")}
}

// foresee completes the states of packages with a change that is due.
func foresee(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec, states []*State) {
	s := simulation{provider: p}
	var changed []*State
	checkHolds := sync.OnceValue(func() error {
		if err := p.CheckHolds(ctx, env); ctx.Err() == nil && !isUnknowable(err) {
			return err
		}
		return nil
	})
	for i, spec := range specs {
		if states[i] == nil {
			continue
		}
		plan, err := (*Type)(nil).Plan(spec, states[i], false)
		if err == nil && states[i].CannotHold == nil && (plan.Has(string(Hold)) || plan.Has(string(Unhold))) {
			states[i].CannotHold = checkHolds()
		}
		if action, _ := due(spec, states[i]); err == nil && action != "" {
			s.requests, changed = append(s.requests, requestsOf(spec, plan)[0]), append(changed, states[i])
		}
	}
	if len(changed) == 0 {
		return
	}
	s.forecasts = make([]forecast, len(changed))
	if err := s.run(ctx, env); err != nil {
		env.Log.DebugContext(ctx, "changes of packages cannot be simulated", "provider", p.Name(), "error", err)
		if ctx.Err() != nil || isUnknowable(err) {
			return
		}
		for i := range s.forecasts {
			s.forecasts[i] = forecast{err: err}
		}
	}
	for i, f := range s.forecasts {
		if f.err != nil {
			f.err = resource.PrerequisiteError{Needs: repositories(), Err: f.err}
		}
		changed[i].forecast = f
	}
}

// simulation finds the effect of each of many changes. It needs one simulation if no change fails
// or removes another package.
type simulation struct {
	provider  PackageProvider
	requests  []Request
	forecasts []forecast
	// good are the changes that can be made together, removed what goes with them.
	good    []int
	removed []Package
}

// run simulates all changes at once, without those that an error names, and else
// by halves. Its error is about the simulation itself.
func (s *simulation) run(ctx context.Context, env resource.Env) error {
	todo := make([]int, len(s.requests))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 {
		removed, err := s.provider.Simulate(ctx, env, s.pick(todo))
		switch {
		case err != nil && !isRefusal(err):
			return err
		case len(todo) == 1:
			s.forecasts[todo[0]] = forecast{removed, err}
			return nil
		case err == nil && len(removed) == 0:
			return nil
		}
		rest := slices.DeleteFunc(slices.Clone(todo), func(i int) bool {
			f := about(err, s.requests[i])
			if f != nil {
				s.forecasts[i].err = f
			}
			return f != nil
		})
		if len(rest) == len(todo) {
			return s.halves(ctx, env, todo)
		}
		todo = rest
	}

	return nil
}

// split simulates changes together with the good changes before them. If a change fails or removes
// other packages, it simulates each half.
func (s *simulation) split(ctx context.Context, env resource.Env, todo []int) error {
	removed, err := s.provider.Simulate(ctx, env, s.pick(slices.Concat(s.good, todo)))
	if err != nil && !isRefusal(err) {
		return err
	}
	more := slices.DeleteFunc(slices.Clone(removed), func(p Package) bool {
		return slices.ContainsFunc(s.removed, func(b Package) bool { return b.Names[0] == p.Names[0] })
	})
	switch {
	case err != nil && len(todo) == 1:
		s.forecasts[todo[0]].err = err
	case len(todo) == 1 || err == nil && len(more) == 0:
		s.forecasts[todo[0]].removed = more
		s.good, s.removed = append(s.good, todo...), removed
	default:
		return s.halves(ctx, env, todo)
	}

	return nil
}

func (s *simulation) halves(ctx context.Context, env resource.Env, todo []int) error {
	half := len(todo) / 2
	if err := s.split(ctx, env, todo[:half]); err != nil {
		return err
	}

	return s.split(ctx, env, todo[half:])
}

func (s *simulation) pick(indexes []int) []Request {
	out := make([]Request, len(indexes))
	for at, i := range indexes {
		out[at] = s.requests[i]
	}

	return out
}

// isUnknowable reports whether an error of a simulation says nothing about the change: a run as
// root refreshes the lists first and waits for locks.
func isUnknowable(err error) bool {
	return slices.ContainsFunc([]error{ErrDownload, ErrNotRoot, ErrLocked}, func(is error) bool { return errors.Is(err, is) })
}

// isRefusal reports whether the package manager refused one of several changes. Other errors
// concern all of them.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{ErrHeld, ErrNoPackage, ErrNoVersion, ErrUnmet}, func(is error) bool { return errors.Is(err, is) })
}
