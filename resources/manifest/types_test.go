package manifest_test

import (
	"context"
	"errors"
	"regexp"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// thing is the type of these tests. It has every kind of property, and provides the path of its
// name.
type thing struct{ name string }

type thingSpec struct {
	model.Common
	Content string            `json:"content,omitempty" alias:"contents"`
	Source  string            `json:"source,omitempty"`
	Mode    string            `json:"mode,omitempty"`
	Owner   string            `json:"owner,omitempty"`
	Force   bool              `json:"force,omitempty"`
	Count   int               `json:"count,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Data    map[string]any    `json:"data,omitempty"`
}

type thingState struct{ model.CommonState }

type thingProvider struct{}

func (thingProvider) Name() string                                               { return "posix" }
func (thingProvider) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

var octal = regexp.MustCompile(`^0?[0-7]{3,4}$`)

func (s *thingSpec) Validate() model.Problems {
	var out model.Problems
	if s.Mode != "" && !octal.MatchString(s.Mode) {
		out.Property("mode", "four octal digits", "invalid mode %q", s.Mode)
	}

	return out
}

func (s *thingSpec) Warnings() model.Problems {
	var out model.Problems
	if s.Count > 100 {
		out.Property("count", "use less", "a count of %d is a lot", s.Count)
	}

	return out
}

func (t thing) Info() resource.Info {
	return resource.Info{Name: t.name, Ensures: []string{"present", "absent"}, NameHelp: "the path"}
}
func (thing) New() *thingSpec { return &thingSpec{} }
func (thing) Relations(s *thingSpec) resource.Relations {
	return resource.Relations{Provides: resource.Provides("path:" + s.Name)}
}

var errUnused = errors.New("manifests run nothing")

func (thing) Status(context.Context, resource.Env, thingProvider, *thingSpec) (*thingState, error) {
	return nil, errUnused
}

func (thing) Plan(*thingSpec, *thingState, bool) (resource.Plan, error) {
	return resource.Plan{}, errUnused
}

func (thing) Apply(context.Context, resource.Env, thingProvider, *thingSpec, resource.Plan) (resource.Outcome, error) {
	return resource.Outcome{}, errUnused
}

// speaker is a thing with outputs.
type speaker struct{ thing }

func (s speaker) Info() resource.Info {
	info := s.thing.Info()
	info.Outputs = []resource.Output{{Name: "stdout"}, {Name: "list"}, {Name: "code"}}

	return info
}

func (speaker) Outputs(*thingSpec, *thingState, resource.Outcome) map[string]any { return nil }

// testTypes are file and package, and exec, which has outputs.
func testTypes() resource.Types {
	return resource.Types{
		resource.Of[*thingSpec, *thingState, thingProvider](thing{name: "file"}, thingProvider{}),
		resource.Of[*thingSpec, *thingState, thingProvider](thing{name: "package"}, thingProvider{}),
		resource.Of[*thingSpec, *thingState, thingProvider](speaker{thing{name: "exec"}}, thingProvider{}),
	}
}
