package build_test

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// kinds is a type for these tests, with every kind of property.
type kinds struct {
	name    string
	ensures []string
}

type kindsSpec struct {
	model.Common
	Enable bool              `json:"enable,omitempty" alias:"enabled" jsonschema_description:"Whether it starts with the machine"`
	Count  int               `json:"count,omitempty"`
	Text   *string           `json:"text,omitempty"`
	Colour string            `json:"colour,omitempty" jsonschema:"enum=red,enum=green,default=red"`
	Args   []string          `json:"args,omitempty"`
	Codes  []int             `json:"codes,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
	Any    any               `json:"any,omitempty"`
}

type kindsState struct{ model.CommonState }

type kindsProvider struct{}

func (kindsProvider) Name() string { return "native" }

func (kindsProvider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return true, 1, nil
}

// Validate checks a constraint that is in the schema but not in the decoder.
func (s *kindsSpec) Validate() model.Problems {
	var out model.Problems
	if s.Colour != "" && s.Colour != "red" && s.Colour != "green" {
		out.Property("colour", "", "invalid colour %q", s.Colour)
	}

	return out
}

func (k kinds) Info() resource.Info {
	return resource.Info{Name: k.name, Summary: "A " + k.name, NameHelp: "what it is called", Ensures: k.ensures}
}
func (kinds) New() *kindsSpec { return &kindsSpec{} }

var errUnused = errors.New("only the schema is of interest")

func (kinds) Status(context.Context, resource.Env, kindsProvider, *kindsSpec) (*kindsState, error) {
	return nil, errUnused
}

func (kinds) Plan(*kindsSpec, *kindsState, bool) (resource.Plan, error) {
	return resource.Plan{}, errUnused
}

func (kinds) Apply(context.Context, resource.Env, kindsProvider, *kindsSpec, resource.Plan) (resource.Outcome, error) {
	return resource.Outcome{}, errUnused
}
