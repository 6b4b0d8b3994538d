package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
)

// Type is a type for the engine: a contract without its type parameters. The funcs of optional interfaces are
// nil if the type does not implement them.
type Type struct {
	Info
	// New returns properties with their defaults.
	New func() Spec
	// NewState returns an empty state, for documentation and schemas.
	NewState func() State
	// Providers are the names of the providers.
	Providers []string
	Select    func(facts model.Facts, spec Spec) (Provider, error)
	Status    func(ctx context.Context, env Env, p Provider, spec Spec) (State, error)
	Plan      func(spec Spec, state State, refresh bool) (Plan, error)
	Apply     func(ctx context.Context, env Env, p Provider, spec Spec, plan Plan) (Outcome, error)
	Verify    func(spec Spec, outcome Outcome, after State) error

	Prepare    func(ctx context.Context, env Env, p Provider, specs []Spec) error
	StatusAll  func(ctx context.Context, env Env, p Provider, specs []Spec) ([]State, []error)
	ApplyAll   func(ctx context.Context, env Env, p Provider, specs []Spec, plans []Plan) ([]Outcome, error)
	HasGuards  func(spec Spec, state State, refresh bool) bool
	EvalGuards func(ctx context.Context, env Env, p Provider, spec Spec, state State) (State, error)
	Watches    func(p Provider, spec Spec) []watch.Point
	Relations  func(spec Spec) Relations
	Claims     func(spec Spec) []Claim
	Outputs    func(spec Spec, state State, outcome Outcome) map[string]any
	Include    func(spec Spec) Inclusion
	Adopt      func(ctx context.Context, env Env, spec Spec, state State) error

	// Properties are the properties of a spec, the common properties first.
	Properties []Property
}

// PreparesFirst reports whether the type prepares before each observation, rather than only when a state
// needs a reload.
func (t *Type) PreparesFirst() bool {
	_, reloads := t.NewState().(Reloader)

	return t.Prepare != nil && !reloads
}

// Of adapts a contract with its providers and the optional interfaces that it implements.
func Of[S Spec, T State, P Provider](c Contract[S, T], providers ...P) *Type {
	t := &Type{
		Info: c.Info(),
		New:  func() Spec { return c.New() },
		Select: func(facts model.Facts, spec Spec) (Provider, error) {
			return Select(providers, facts, spec)
		},
		Providers: names(providers),
		Plan: func(spec Spec, state State, refresh bool) (Plan, error) {
			return c.Plan(spec.(S), state.(T), refresh)
		},
		NewState: func() State { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) },
	}
	t.Properties = properties(t)
	adaptVerify(t, c)
	adaptMachine[S, T, P](t, c)
	adaptOrder[S, T, P](t, c)

	return t
}

func adaptVerify[S Spec, T State](t *Type, c Contract[S, T]) {
	t.Verify = func(spec Spec, _ Outcome, after State) error {
		plan, err := c.Plan(spec.(S), after.(T), false)
		if err == nil && !plan.Empty() {
			err = fmt.Errorf("still due: %s", plan.Message())
		}
		return err
	}
	if v, ok := c.(Verifier[S, T]); ok {
		t.Verify = func(spec Spec, outcome Outcome, after State) error {
			return v.Verify(spec.(S), outcome, after.(T))
		}
	}
}

// SharesCalls reports whether resources of both types share the calls StatusAll and ApplyAll.
func (t *Type) SharesCalls(other *Type) bool { return t.FamilyName() == other.FamilyName() }

// FamilyName returns the family of the type, or its name.
func (t *Type) FamilyName() string { return cmp.Or(t.Family, t.Name) }

// Identify names the resource in its state. It returns no state with an error.
func (t *Type) Identify(spec Spec, state State, err error) (State, error) {
	if err != nil {
		return nil, err
	}
	common := state.State()
	common.Protocol, common.ResourceType, common.Name = model.StateProtocol(t.Name), t.Name, spec.Meta().Name

	return state, nil
}

// adaptMachine sets the funcs that read or change the machine.
func adaptMachine[S Spec, T State, P Provider](t *Type, c Contract[S, T]) {
	if v, ok := c.(Preparer[S, P]); ok {
		t.Prepare = func(ctx context.Context, env Env, p Provider, specs []Spec) error {
			return v.Prepare(ctx, env, p.(P), typed[S](specs))
		}
	}
	switch v := c.(type) {
	case Batcher[S, T, P]:
		adaptBatcher(t, v)
	case Single[S, T, P]:
		t.Status = func(ctx context.Context, env Env, p Provider, spec Spec) (State, error) {
			state, err := v.Status(ctx, env, p.(P), spec.(S))
			return t.Identify(spec, state, err)
		}
		t.Apply = func(ctx context.Context, env Env, p Provider, spec Spec, plan Plan) (Outcome, error) {
			return v.Apply(ctx, env, p.(P), spec.(S), plan)
		}
	default:
		panic(fmt.Sprintf("the type %s is neither a Single nor a Batcher", t.Name))
	}
	if v, ok := c.(Guards[S, T, P]); ok {
		t.HasGuards = func(spec Spec, state State, refresh bool) bool {
			return v.HasGuards(spec.(S), state.(T), refresh)
		}
		t.EvalGuards = func(ctx context.Context, env Env, p Provider, spec Spec, state State) (State, error) {
			guarded, err := v.EvalGuards(ctx, env, p.(P), spec.(S), state.(T))
			return t.Identify(spec, guarded, err)
		}
	}
	if v, ok := c.(Watcher[S, P]); ok {
		t.Watches = func(p Provider, spec Spec) []watch.Point { return v.Watches(p.(P), spec.(S)) }
	}
}

// adaptBatcher makes Status and Apply of a Batcher batches of one.
func adaptBatcher[S Spec, T State, P Provider](t *Type, b Batcher[S, T, P]) {
	t.StatusAll = func(ctx context.Context, env Env, p Provider, specs []Spec) ([]State, []error) {
		states, errs := b.StatusAll(ctx, env, p.(P), typed[S](specs))
		out := make([]State, len(states))
		for i := range min(len(states), len(errs), len(specs)) {
			out[i], errs[i] = t.Identify(specs[i], states[i], errs[i])
		}
		return out, errs
	}
	t.ApplyAll = func(ctx context.Context, env Env, p Provider, specs []Spec, plans []Plan) ([]Outcome, error) {
		return b.ApplyAll(ctx, env, p.(P), typed[S](specs), plans)
	}
	t.Status = func(ctx context.Context, env Env, p Provider, spec Spec) (State, error) {
		states, errs := t.StatusAll(ctx, env, p, []Spec{spec})
		return states[0], errs[0]
	}
	t.Apply = func(ctx context.Context, env Env, p Provider, spec Spec, plan Plan) (Outcome, error) {
		outcomes, err := t.ApplyAll(ctx, env, p, []Spec{spec}, []Plan{plan})
		if batch, is := errors.AsType[BatchError](err); is {
			err = batch[0]
		}
		if len(outcomes) != 1 {
			return Outcome{}, cmp.Or(err, fmt.Errorf("%s returned %d outcomes for one change", t.Name, len(outcomes)))
		}
		return outcomes[0], err
	}
}

func adaptOrder[S Spec, T State, P Provider](t *Type, c Contract[S, T]) {
	if v, ok := c.(Relater[S]); ok {
		t.Relations = func(spec Spec) Relations { return v.Relations(spec.(S)) }
	}
	if v, ok := c.(Claimer[S]); ok {
		t.Claims = func(spec Spec) []Claim { return v.Claims(spec.(S)) }
	}
	if v, ok := c.(Outputter[S, T]); ok {
		t.Outputs = func(spec Spec, state State, outcome Outcome) map[string]any {
			return v.Outputs(spec.(S), state.(T), outcome)
		}
	}
	if v, ok := c.(Adopter[S, T]); ok {
		t.Adopt = func(ctx context.Context, env Env, spec Spec, state State) error {
			return v.Adopt(ctx, env, spec.(S), state.(T))
		}
	}
	if v, ok := c.(Includer[S]); ok {
		t.Include = func(spec Spec) Inclusion { return v.Include(spec.(S)) }
	}
}

func typed[S Spec](specs []Spec) []S {
	out := make([]S, len(specs))
	for i := range specs {
		out[i] = specs[i].(S)
	}

	return out
}

// Provider implements a type on a platform. The provider interface of each type
// embeds it.
type Provider interface {
	// Name is the value of the provider property.
	Name() string
	// IsManageable reports whether the provider can manage a resource on a node with
	// these facts, and its priority: the lowest wins. The error is why it cannot.
	IsManageable(facts model.Facts, spec Spec) (bool, int, error)
}

// Select returns the provider of a resource: the named one, or the manageable
// one with the lowest priority number. Its errors wrap model.ErrProviderNotFound
// and model.ErrNoSuitableProvider.
func Select[P Provider](providers []P, facts model.Facts, spec Spec) (P, error) {
	var best P
	named := spec.Meta().Provider
	lowest, found, reasons := 0, false, []error{}
	for _, p := range providers {
		if named != "" && p.Name() != named {
			continue
		}
		ok, priority, err := p.IsManageable(facts, spec)
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Errorf("%s: %w", p.Name(), err))
		case !ok:
			reasons = append(reasons, errors.New(p.Name()+": cannot manage it here"))
		case !found || priority < lowest:
			best, lowest, found = p, priority, true
		}
	}
	switch {
	case found:
		return best, nil
	case len(reasons) == 0 && named != "":
		return best, fmt.Errorf("%w: %q, there is %s", model.ErrProviderNotFound, named, strings.Join(names(providers), ", "))
	default:
		return best, unsuitable(reasons)
	}
}

// unsuitable wraps the reasons: one may be a PrerequisiteError.
func unsuitable(reasons []error) error {
	err := model.ErrNoSuitableProvider
	for i, reason := range reasons {
		err = fmt.Errorf([...]string{"%w: %w", "%w; %w"}[min(i, 1)], err, reason)
	}

	return err
}

func names[P Provider](providers []P) []string {
	var out []string
	for _, p := range providers {
		out = append(out, p.Name())
	}

	return out
}
