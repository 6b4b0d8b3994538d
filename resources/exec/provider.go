package exec

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// ExecProvider runs commands.
type ExecProvider interface {
	resource.Provider
	// Status reads whether the path in creates exists.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Execute runs how.Argv if it is set, or else the command. A failing exit code is not an error.
	Execute(ctx context.Context, env resource.Env, command string, how command.Command) (command.Result, error)
}

// Look returns the state of an exec for a provider that starts program, or the first word of the command
// if program is empty. Any entry satisfies creates, including a dangling link.
func Look(env resource.Env, spec *Spec, program string) (*State, error) {
	state := &State{CommonState: model.CommonState{Ensure: model.EnsurePresent}, obstacle: obstacle(env, spec, program)}
	if spec.Creates == "" {
		return state, nil
	}
	entry, err := env.Host.Look(spec.Creates)
	if err != nil {
		return nil, err
	}
	state.CreatesSatisfied = entry.Kind != files.Absent

	return state, nil
}
