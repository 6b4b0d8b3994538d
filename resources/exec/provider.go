package exec

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// ExecProvider is a way of running commands.
type ExecProvider interface {
	resource.Provider
	// Status reports whether what the command creates is there.
	Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error)
	// Execute makes argv of command, puts it into how, and runs that. An exit code is no error.
	Execute(ctx context.Context, env resource.Env, command string, how command.Command) (command.Result, error)
}

// Look is the Status that every provider of commands has, told the program that
// it starts, or nothing when that is the first word of the command. What stands
// at creates counts whatever it is, a link that leads nowhere too.
func Look(env resource.Env, spec *Spec, program string) (*State, error) {
	state := &State{CommonState: model.CommonState{
		Protocol: model.StateProtocol("exec"), ResourceType: "exec", Name: spec.Name, Ensure: model.EnsurePresent,
	}, obstacle: obstacle(env, spec, program)}
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
