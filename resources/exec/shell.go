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

// errNoShellCommand is a blank command.
var errNoShellCommand = errors.New("no command to execute")

// Shell passes commands to a shell.
type Shell struct{ shell string }

// NewShell returns the provider for /bin/sh.
func NewShell() Shell { return Shell{shell: "/bin/sh"} }

// Name is shell.
func (Shell) Name() string { return "shell" }

// IsManageable reports whether the shell exists. The priority is the worst, so a resource has to name this
// provider.
func (p Shell) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	if _, err := os.Stat(p.shell); err != nil {
		return false, 0, fmt.Errorf("there is no shell: %w", err)
	}

	return true, 99, nil
}

// Status is Look.
func (p Shell) Status(_ context.Context, env resource.Env, spec *Spec) (*State, error) {
	return Look(env, spec, p.shell)
}

// Execute passes the whole command to the shell, as one argument.
func (p Shell) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if strings.TrimSpace(text) == "" {
		return command.Result{}, errNoShellCommand
	}
	how.Argv = []string{p.shell, "-c", text}

	return env.Host.Run(ctx, how)
}
