package chaos

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// exploding is a resource type that panics: users have no way to make one of muster do
// that, as far as anybody knows.
type exploding struct{}

// explodingSpec says where it panics: status, plan or apply.
type explodingSpec struct {
	model.Common
	At string `json:"at" jsonschema_description:"Where it panics"`
}

// Validate accepts everything.
func (*explodingSpec) Validate() model.Problems { return nil }

type explodingState struct{ model.CommonState }

type anywhere struct{}

func (anywhere) Name() string                                               { return "anywhere" }
func (anywhere) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

func newExploding() *resource.Type { return resource.Of(exploding{}, anywhere{}) }

func (exploding) Info() resource.Info {
	return resource.Info{Name: "exploding", Summary: "What panics", NameHelp: "any", Ensures: []string{model.EnsurePresent}, Reads: resource.Paths, Writes: resource.Paths}
}

func (exploding) New() *explodingSpec { return &explodingSpec{} }

func (exploding) Status(_ context.Context, _ resource.Env, _ anywhere, spec *explodingSpec) (*explodingState, error) {
	explodeAt(spec, "status")

	return &explodingState{model.CommonState{Ensure: model.EnsureAbsent}}, nil
}

func (exploding) Plan(spec *explodingSpec, _ *explodingState, _ bool) (plan resource.Plan, err error) {
	explodeAt(spec, "plan")
	plan.Add(model.Change{Action: "explode", Message: "Would have exploded"})

	return plan, nil
}

func (exploding) Apply(_ context.Context, _ resource.Env, _ anywhere, spec *explodingSpec, _ resource.Plan) (resource.Outcome, error) {
	explodeAt(spec, "apply")

	return resource.Outcome{}, nil
}

func explodeAt(spec *explodingSpec, here string) {
	if spec.At == here {
		panic("exploded in " + here)
	}
}
