package pkg

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/resources/resource"
)

// forecast is what the change of a package would do: what it removes besides, or
// why it would fail.
type forecast struct {
	removed []Package
	err     error
}

// repositories returns the paths in which package managers find repositories.
func repositories() []string {
	return []string{resource.PathNeed("/etc/apt/sources.list"), resource.PathNeed("/etc/apt/sources.list.d/"), resource.PathNeed("/etc/yum.repos.d/")}
}

// foresee completes the states of packages that are to be changed.
func foresee(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec, states []*State) {
	s := simulation{provider: p}
	var changed []*State
	for i, spec := range specs {
		if states[i] == nil {
			continue
		}
		plan, err := (*Type)(nil).Plan(spec, states[i], false)
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
		return
	}
	for i, f := range s.forecasts {
		if f.err != nil {
			f.err = resource.PrerequisiteError{Needs: repositories(), Err: f.err}
		}
		changed[i].forecast = f
	}
}

// simulation finds what each of many changes would do, with one question where
// none fails and nothing else is removed.
type simulation struct {
	provider  PackageProvider
	requests  []Request
	forecasts []forecast
}

// run simulates all changes at once, without those that an error names, and else
// one by one. Its error is about the simulation itself.
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
			return s.oneByOne(ctx, env, todo)
		}
		todo = rest
	}

	return nil
}

// oneByOne simulates each change together with those before it.
func (s *simulation) oneByOne(ctx context.Context, env resource.Env, todo []int) error {
	var good []int
	var before []Package
	for _, i := range todo {
		removed, err := s.provider.Simulate(ctx, env, s.pick(append(good, i)))
		if err != nil {
			if !isRefusal(err) {
				return err
			}
			s.forecasts[i].err = err
			continue
		}
		s.forecasts[i].removed = slices.DeleteFunc(slices.Clone(removed), func(p Package) bool {
			return slices.ContainsFunc(before, func(b Package) bool { return b.Names[0] == p.Names[0] })
		})
		good, before = append(good, i), removed
	}

	return nil
}

func (s *simulation) pick(indexes []int) []Request {
	out := make([]Request, len(indexes))
	for at, i := range indexes {
		out[at] = s.requests[i]
	}

	return out
}

// isRefusal reports whether a package manager would refuse a change, rather than
// being unable to simulate it.
func isRefusal(err error) bool {
	return slices.ContainsFunc([]error{ErrHeld, ErrNoPackage, ErrNoVersion, ErrUnmet}, func(is error) bool { return errors.Is(err, is) })
}
