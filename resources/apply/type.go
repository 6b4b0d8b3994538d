package apply

import (
	"context"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the apply type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...CCMManifest) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type. It changes nothing itself; the child's resources do.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:     "apply",
		Summary:  "Child manifests; their resources become part of the run",
		NameHelp: "the path of the child manifest, relative to the manifest that names it",
		Ensures:  []string{model.EnsurePresent},
		Reads:    resource.Paths,
	}
}

// New returns empty properties.
func (Type) New() *Spec { return &Spec{} }

// Include returns the child manifest.
func (Type) Include(spec *Spec) resource.Inclusion { return spec.inclusion() }

// Status returns the outcome of the child manifest so far.
func (Type) Status(_ context.Context, env resource.Env, _ CCMManifest, spec *Spec) (*State, error) {
	return StateOf(env, spec), nil
}

// Plan reports changes of the child's resources as a change of this one, and
// their failures as an error.
func (Type) Plan(_ *Spec, state *State, _ bool) (resource.Plan, error) {
	var plan resource.Plan
	if state.Changed > 0 {
		plan.Add(model.Change{Action: "apply", Message: fmt.Sprintf("Would have changed %d of the %d resources of the child manifest", state.Changed, state.Resources)})
	}

	return plan, Failure(state)
}

// Apply has the provider judge the child manifest.
func (Type) Apply(ctx context.Context, env resource.Env, p CCMManifest, spec *Spec, _ resource.Plan) (resource.Outcome, error) {
	state, err := p.ApplyManifest(ctx, env, spec)
	if err != nil {
		return resource.Outcome{}, err
	}

	return resource.Outcome{Children: model.Counts{Changed: state.Changed}}, nil
}

// Verify accepts what the child's resources have verified.
func (Type) Verify(_ *Spec, outcome resource.Outcome, after *State) error {
	if err := Failure(after); err != nil {
		return err
	}
	if outcome.Children.Changed != after.Changed {
		return fmt.Errorf("%d resources changed, but the provider reports %d", after.Changed, outcome.Children.Changed)
	}

	return nil
}

// Failure returns how many resources of a child manifest failed, nil for none.
func Failure(state *State) error {
	switch {
	case state.Failed > 0:
		return fmt.Errorf("%d of the %d resources of the child manifest failed", state.Failed, state.Resources)
	case state.Unmet > 0:
		return fmt.Errorf("%d of the %d resources of the child manifest have unmet requirements", state.Unmet, state.Resources)
	default:
		return nil
	}
}
