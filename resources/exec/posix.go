package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// Posix runs a program with arguments, without a shell.
type Posix struct{}

// Name is posix.
func (Posix) Name() string { return "posix" }

// IsManageable accepts every command, with the best priority: posix is the default provider.
func (Posix) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return true, 1, nil
}

// Execute runs how.Argv, or else the command, split by the quoting rules of the shell. A command without
// words is ErrNoCommand.
func (Posix) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if how.Argv == nil {
		words, err := command.Split(text)
		switch {
		case errors.Is(err, command.ErrNoProgram):
			return command.Result{}, ErrNoCommand
		case err != nil:
			return command.Result{}, err
		}
		how.Argv = words
	}

	return env.Host.Run(ctx, how)
}

var errNoShellCommand = errors.New("no command to execute")

// Shell passes commands to the shell at a path.
type Shell string

// Name is shell.
func (Shell) Name() string { return "shell" }

// IsManageable reports whether the shell exists. The priority is the worst, so a resource has to name this
// provider.
func (p Shell) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	if _, err := os.Stat(string(p)); err != nil {
		return false, 0, fmt.Errorf("there is no shell: %w", err)
	}

	return true, 99, nil
}

// Execute passes the whole command to the shell, as one argument.
func (p Shell) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if strings.TrimSpace(text) == "" {
		return command.Result{}, errNoShellCommand
	}
	how.Argv = []string{string(p), "-c", text}

	return env.Host.Run(ctx, how)
}
