// Package apply is the resource type for child manifests. The resources of a child manifest become
// part of the run.
package apply

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

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
func (Type) Include(spec *Spec) resource.Inclusion {
	return resource.Inclusion{
		Source: spec.Name, Data: spec.Data, Noop: spec.Noop, HealthCheckOnly: spec.HealthCheckOnly,
		DenyApply: spec.AllowApply != nil && !*spec.AllowApply,
	}
}

// Status returns the outcome of the child manifest so far.
func (Type) Status(_ context.Context, env resource.Env, _ CCMManifest, spec *Spec) (*State, error) {
	return stateOf(env, spec), nil
}

// Plan reports changes of the child's resources as a change of this one, and
// their failures as an error.
func (Type) Plan(_ *Spec, state *State, _ bool) (resource.Plan, error) {
	var plan resource.Plan
	if state.Changed > 0 {
		plan.Add(model.Change{Action: "apply", Message: fmt.Sprintf("Would have changed %d of the %d resources of the child manifest", state.Changed, state.Resources)})
	}

	return plan, failure(state)
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
	if err := failure(after); err != nil {
		return err
	}
	if outcome.Children.Changed != after.Changed {
		return fmt.Errorf("%d resources changed, but the provider reports %d", after.Changed, outcome.Children.Changed)
	}

	return nil
}

// failure returns how many resources of a child manifest failed, nil for none.
func failure(state *State) error {
	switch {
	case state.Failed > 0:
		return fmt.Errorf("%d of the %d resources of the child manifest failed", state.Failed, state.Resources)
	case state.Unmet > 0:
		return fmt.Errorf("%d of the %d resources of the child manifest have unmet requirements", state.Unmet, state.Resources)
	default:
		return nil
	}
}

// Spec are the properties of an apply.
type Spec struct {
	model.Common
	HealthCheckOnly bool           `json:"health_check_only,omitempty" jsonschema_description:"Only run the health checks of the child manifest; also when the parent only runs checks"`
	AllowApply      *bool          `json:"allow_apply,omitempty" jsonschema:"default=true" jsonschema_description:"Whether the child manifest may contain apply resources"`
	Data            map[string]any `json:"data,omitempty" jsonschema_description:"Data for the child manifest; overrides its own, and external data overrides both"`
}

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	switch {
	case strings.Contains(s.Name, "://"):
		out.Property("name", "fetch it to a file, or put it into the bundle", "a child manifest is a file, not a URL: %q", s.Name)
	case s.Name == "-":
		out.Property("name", "give its path", "a child manifest cannot be read from standard input")
	case filepath.Clean(s.Name) != s.Name:
		out.Property("name", "write it as "+filepath.Clean(s.Name), "the path must be clean, without . or .. or a / too many: %q", s.Name)
	case strings.ContainsRune(s.Name, 0):
		out.Property("name", "", "the path must not contain a NUL byte")
	}

	return out
}

// State is the outcome of a child manifest, known once its resources have run.
type State struct {
	model.CommonState
	Resources int `json:"resources" jsonschema_description:"Number of resources in the child manifest"`
	Changed   int `json:"changed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Unmet     int `json:"unmet" jsonschema_description:"Number skipped because of unmet requirements"`
	NotRun    int `json:"not_run"`
}

// stateOf returns the outcome of a child manifest. In noop, planned changes
// count as changes.
func stateOf(env resource.Env, spec *Spec) *State {
	children := env.Children
	state := &State{
		CommonState: model.CommonState{Ensure: model.EnsurePresent},
		Resources:   children.Total, Changed: children.Changed, Failed: children.Failed, Skipped: children.Skipped, Unmet: children.Unmet, NotRun: children.NotRun,
	}
	if !env.Scope.Noop && !spec.Noop {
		state.Changed -= children.Noop
	}

	return state
}

// CCMManifest executes child manifests.
type CCMManifest struct{}

// Name returns the value of the provider property.
func (CCMManifest) Name() string { return "ccmmanifest" }

// IsManageable accepts every child manifest with priority 1.
func (CCMManifest) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// ApplyManifest logs the outcome of the child's resources, and fails when one
// of them failed.
func (CCMManifest) ApplyManifest(ctx context.Context, env resource.Env, spec *Spec) (*State, error) {
	state := stateOf(env, spec)
	attrs := []any{"resources", state.Resources, "changed", state.Changed, "skipped", state.Skipped}
	if err := failure(state); err != nil {
		env.Log.ErrorContext(ctx, "child manifest failed", append(attrs, "failed", state.Failed, "unmet", state.Unmet)...)
		return state, err
	}
	if state.Changed > 0 {
		env.Log.WarnContext(ctx, "child manifest changed", attrs...)
	} else {
		env.Log.InfoContext(ctx, "child manifest applied", attrs...)
	}

	return state, nil
}
