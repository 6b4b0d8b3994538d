package scaffold

import (
	"context"
	"fmt"
	"maps"
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
	t, err := p.observe(ctx, env, spec, false)
	if err != nil {
		return nil, err
	}
	if len(t.due) > 0 && !env.Scope.ReadOnly() {
		size := 0
		for _, f := range t.files {
			size += len(f.content)
		}
		p.cache.put(env.RunID, spec, t.files, size)
	}

	return t.state, nil
}

// Apply writes the files, or removes them.
func (Type) Apply(ctx context.Context, env resource.Env, p Choria, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	t, err := p.observe(ctx, env, spec, true)
	switch {
	case err != nil:
		return resource.Outcome{}, err
	case plan.Has(actionRemove):
		return resource.Outcome{}, p.Remove(ctx, env, spec, t.state)
	default:
		return resource.Outcome{}, t.apply(ctx)
	}
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

// The actions of a plan.
const (
	actionScaffold = "scaffold"
	actionPurge    = "purge"
	actionRemove   = "remove"
)

// maxChanges is the maximum number of listed changes, because one report contains them.
const maxChanges = 500

// Plan returns the pending changes: files to write or to remove. Its error is an obstacle that must
// not be replaced.
func (Type) Plan(spec *Spec, state *State, _ bool) (resource.Plan, error) {
	if spec.Ensure == model.EnsureAbsent {
		return planAbsent(spec, state), state.Obstacle
	}
	changes, files := slices.Concat(state.Due...), len(state.Due)
	if spec.Purge {
		files += len(state.Metadata.Purged)
		changes = append(changes, removals(actionPurge, state.Metadata.Purged)...)
	}
	if !state.Metadata.TargetExists && len(changes) == 0 {
		changes = append(changes, model.Change{Action: actionScaffold, Property: spec.Name, From: model.EnsureAbsent, To: model.EnsurePresent})
	}

	message := "Would have changed " + count(files) + attributesMessage(state.Attributes)
	if spec.Validator != "" {
		message += resource.ValidatedFirst
	}

	return planOf(changes, message), state.Obstacle
}

// maxNamed is the number of files that a message names for each effect on attributes.
const maxNamed = 3

// attributesMessage returns the part of a message about the extended attributes of files.
func attributesMessage(effects map[string][]string) (message string) {
	for _, effect := range slices.Sorted(maps.Keys(effects)) {
		paths := effects[effect]
		message += " and " + effect + " of " + strings.Join(paths[:min(maxNamed, len(paths))], ", ")
		if more := len(paths) - maxNamed; more > 0 {
			message += fmt.Sprintf(" and %d more", more)
		}
	}

	return message
}

// planAbsent counts files to purge, as the specification does, but removes only the files of the
// scaffold.
func planAbsent(spec *Spec, state *State) resource.Plan {
	changes := append(removals(actionRemove, state.Metadata.Changed), removals(actionRemove, state.Metadata.Stable)...)
	files := len(changes)
	if spec.Purge {
		files += len(state.Metadata.Purged)
	}

	return planOf(changes, "Would have removed "+count(files))
}

func count(files int) string {
	if files == 1 {
		return "1 scaffold file"
	}

	return fmt.Sprintf("%d scaffold files", files)
}

func removals(action string, paths []string) []model.Change {
	out := make([]model.Change, len(paths))
	for i, path := range paths {
		out[i] = model.Change{Action: action, Property: path, From: model.EnsurePresent, To: model.EnsureAbsent}
	}

	return out
}

// planOf sets the message of all changes on the first change.
func planOf(changes []model.Change, message string) resource.Plan {
	if len(changes) == 0 {
		return resource.Plan{}
	}
	paths := make([]string, len(changes))
	for i, change := range changes {
		paths[i] = change.Property
	}
	if more := len(changes) - maxChanges; more > 0 {
		changes = append(changes[:maxChanges:maxChanges], model.Change{Action: changes[0].Action, Property: fmt.Sprintf("… %d more", more)})
	}
	changes[0].Message = message

	return resource.Plan{Changes: changes, Paths: slices.Compact(paths)}
}
