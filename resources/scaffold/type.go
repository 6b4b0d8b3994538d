package scaffold

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the scaffold type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...Choria) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type. Its post commands may change anything.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:        "scaffold",
		NeedsOrigin: true,
		Summary:     "Directories rendered from directories of templates",
		NameHelp:    "the absolute path of the target directory, for example /etc/app",
		Argument:    "source",
		Ensures:     []string{model.EnsurePresent, model.EnsureAbsent},
		Reads:       resource.Paths,
		Writes:      resource.Everything,
	}
}

// New returns properties with their defaults.
func (Type) New() *Spec { return &Spec{Engine: EngineJet} }

// Status renders the templates and compares the files with the target.
func (Type) Status(ctx context.Context, env resource.Env, p Choria, spec *Spec) (*State, error) {
	return p.Status(ctx, env, spec)
}

// Apply writes the files, or removes them.
func (Type) Apply(ctx context.Context, env resource.Env, p Choria, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	if !plan.Has(actionRemove) {
		return resource.Outcome{}, p.Scaffold(ctx, env, spec)
	}
	state, err := p.Status(ctx, env, spec)
	if err != nil {
		return resource.Outcome{}, err
	}

	return resource.Outcome{}, p.Remove(ctx, env, spec, state)
}

// Verify returns an error with the files that are not in their desired state.
func (t Type) Verify(spec *Spec, _ resource.Outcome, after *State) error {
	plan, err := t.Plan(spec, after, false)
	switch {
	case err != nil:
		return err
	case plan.Empty():
		return nil
	case spec.Ensure == model.EnsureAbsent:
		return fmt.Errorf("files are still there: %s", named(plan))
	}

	hint := "templates must give the same every time"
	if len(spec.Post) > 0 {
		hint += ", and post must change no other file of the target"
	}

	return fmt.Errorf("still different: %s (%s)", named(plan), hint)
}

// named returns the first files of a plan.
func named(plan resource.Plan) string {
	const most = 3
	paths := make([]string, len(plan.Changes))
	for i, c := range plan.Changes {
		paths[i] = c.Property
	}
	if paths = slices.Compact(paths); len(paths) > most {
		paths = append(paths[:most], "…")
	}

	return strings.Join(paths, ", ")
}

// Relations order a scaffold after the directories above it and its source, and before resources
// that need its target.
func (Type) Relations(spec *Spec) resource.Relations {
	out := resource.Relations{}
	if strings.HasPrefix(spec.Source, "/") {
		out.Needs = []resource.Need{{What: resource.PathNeed(strings.TrimRight(spec.Source, "/")), ReadsContent: true}}
	}
	if spec.Ensure == model.EnsureAbsent {
		out.Provides = resource.Provides(resource.EmptiedNeed(spec.Name), resource.EmptiedNeed(filepath.Dir(spec.Name)))
		return out
	}
	out.Provides = append(resource.Provides(resource.PathNeed(spec.Name)), resource.ProvidesAbove(spec.Name)...)
	out.Needs = append(out.Needs, resource.NeedsAbove(spec.Name)...)

	return out
}

// Watches returns the target with everything below it, and the templates.
func (Type) Watches(_ Choria, spec *Spec) []watch.Point {
	return resource.WatchTrees(spec.Name, spec.Templates())
}
