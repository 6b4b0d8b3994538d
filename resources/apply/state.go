package apply

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

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

// StateOf returns the outcome of a child manifest. In noop, planned changes
// count as changes.
func StateOf(env resource.Env, spec *Spec) *State {
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
