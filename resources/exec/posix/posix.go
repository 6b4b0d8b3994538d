// Package posix runs commands without a shell.
package posix

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// priority is the best one: this is the default provider.
const priority = 1

// Provider runs a program with arguments, without a shell.
type Provider struct{}

// Name is posix.
func (Provider) Name() string { return "posix" }

// IsManageable accepts every command.
func (Provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return true, priority, nil
}

// Status is exec.Look.
func (Provider) Status(_ context.Context, env resource.Env, spec *exec.Spec) (*exec.State, error) {
	return exec.Look(env, spec, "")
}

// Execute runs how.Argv, else the command, split by the shell's quoting rules. Its
// errors are exec.ErrNoCommand and those of command.Split and Host.Run.
func (Provider) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if how.Argv == nil {
		words, err := command.Split(text)
		switch {
		case errors.Is(err, command.ErrNoProgram):
			return command.Result{}, exec.ErrNoCommand
		case err != nil:
			return command.Result{}, err
		}
		how.Argv = words
	}

	return env.Host.Run(ctx, how)
}
