package pkg

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// achieved reports whether a failed change had the wanted result for this package, because the script of
// another package failed.
func (t *Type) achieved(p PackageProvider, spec *Spec, plan resource.Plan, after *State) bool {
	state, err := stateFor(p, spec, after, "")

	return err == nil && state.Ensure != plan.Changes[0].From && t.Verify(spec, resource.Outcome{}, state) == nil
}

// requestsOf returns the changes of a plan. The change of the version comes first.
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

// warnOfRemoved logs the packages that were also removed.
func warnOfRemoved(ctx context.Context, env resource.Env, plans ...resource.Plan) {
	var removed []string
	for _, plan := range plans {
		for _, c := range plan.Changes {
			if name, ok := strings.CutPrefix(c.Property, along); ok {
				removed = append(removed, name)
			}
		}
	}
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
		states, err := p.StatusAll(ctx, env, names)
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
		warnOfRemoved(ctx, env, plans...)
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
	errs, named := make(resource.BatchError, len(specs)), false
	for i, s := range specs {
		own, done := about(failed, requestsOf(s, plans[i])[0]), t.achieved(p, s, plans[i], after[s.Name])
		switch {
		case own != nil && done:
			errs[i], named = resource.Concluded{Err: own}, true
		case own != nil:
			errs[i], named = own, true
		case !done:
			errs[i] = failed
		}
	}
	if !named {
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
