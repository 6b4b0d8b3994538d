package note

import (
	"context"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Provider reads and writes notes on a platform.
type Provider interface {
	resource.Provider
	Status(ctx context.Context, env resource.Env, path string) (*State, error)
	Set(ctx context.Context, env resource.Env, path, value string) error
	Unset(ctx context.Context, env resource.Env, path string) error
}

// Type is the note type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...Provider) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:     "note",
		Summary:  "Notes: files that hold one value",
		NameHelp: "the absolute path, for example /etc/hostname",
		Ensures:  []string{model.EnsurePresent, model.EnsureAbsent},
		Outputs:  []resource.Output{{Name: "value", Help: "Current value"}},
		Reads:    resource.Paths,
		Writes:   resource.Paths,
	}
}

// New returns empty properties.
func (Type) New() *Spec { return &Spec{} }

// Status reads the note, and what keeps it from being created.
func (Type) Status(ctx context.Context, env resource.Env, p Provider, spec *Spec) (*State, error) {
	state, err := p.Status(ctx, env, spec.Name)
	if err != nil || state.Ensure == model.EnsurePresent || spec.Ensure == model.EnsureAbsent || spec.Value == "" {
		return state, err
	}

	return state, resource.Obstacle(env.Host, spec.Name, false)
}

// The actions of a plan.
const (
	actionSet   = "set"
	actionUnset = "unset"
)

// Plan compares the current with the desired value.
func (Type) Plan(spec *Spec, state *State, _ bool) (plan resource.Plan, err error) {
	switch {
	case spec.Ensure == model.EnsureAbsent && state.Ensure == model.EnsurePresent:
		plan.Add(model.Change{Action: actionUnset, Message: "Would have removed the note"})
	case spec.Ensure == model.EnsurePresent && (state.Ensure == model.EnsureAbsent || state.Value != spec.Value):
		plan.Add(model.Change{Action: actionSet, Message: "Would have set the value", Property: "value", From: state.Value, To: spec.Value})
	}

	return plan, nil
}

// Apply makes the change of the plan.
func (Type) Apply(ctx context.Context, env resource.Env, p Provider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	switch {
	case plan.Has(actionUnset):
		return resource.Outcome{}, p.Unset(ctx, env, spec.Name)
	case plan.Has(actionSet):
		return resource.Outcome{}, p.Set(ctx, env, spec.Name, spec.Value)
	default:
		return resource.Outcome{}, fmt.Errorf("nothing to do: %+v", plan)
	}
}

// Relations order a note after the directories above it, and before whatever
// needs its path.
func (Type) Relations(spec *Spec) resource.Relations {
	out := resource.Relations{Needs: resource.NeedsAbove(spec.Name)}
	if spec.Ensure != model.EnsureAbsent {
		out.Provides = resource.Provides(resource.PathNeed(spec.Name))
	}

	return out
}

// Watches returns the file, so drift is noticed at once.
func (Type) Watches(_ Provider, spec *Spec) []watch.Point { return resource.WatchPaths(spec.Name) }

// Outputs returns the value.
func (Type) Outputs(_ *Spec, state *State, _ resource.Outcome) map[string]any {
	return map[string]any{"value": state.Value}
}
