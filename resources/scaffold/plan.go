package scaffold

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

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
