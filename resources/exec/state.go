package exec

import "github.com/musterfleet/muster/model"

// State is the observed state of an exec; its ensure is always present.
type State struct {
	model.CommonState
	ExitCode         *int `json:"exit_code,omitempty" jsonschema_description:"Exit code of the command; absent when it did not run"`
	CreatesSatisfied bool `json:"creates_satisfied" jsonschema_description:"Whether the path of creates exists"`

	// refused is set when a guard forbids the command.
	refused bool
	// obstacle is why the command cannot be started.
	obstacle error
}

// satisfied reports whether only a refresh runs the command.
func (s *State) satisfied(spec *Spec) bool { return s.CreatesSatisfied || spec.RefreshOnly }
