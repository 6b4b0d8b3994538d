// Package shell is the provider of commands that are run by /bin/sh.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// priority is worse than that of any other provider: a shell is only used when
// it is asked for.
const priority = 99

// ErrNoCommand is a command of blanks.
var ErrNoCommand = errors.New("no command to execute")

// Provider hands commands to a shell.
type Provider struct{ shell string }

// New makes the provider for /bin/sh.
func New() Provider { return Provider{shell: "/bin/sh"} }

// Name is shell.
func (Provider) Name() string { return "shell" }

// IsManageable reports whether there is a shell; the error names the one that is missing.
func (p Provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	if _, err := os.Stat(p.shell); err != nil {
		return false, 0, fmt.Errorf("there is no shell: %w", err)
	}

	return true, priority, nil
}

// Status is exec.Look.
func (p Provider) Status(_ context.Context, env resource.Env, spec *exec.Spec) (*exec.State, error) {
	return exec.Look(env, spec, p.shell)
}

// Execute returns the whole command to the shell, as one argument.
func (p Provider) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if strings.TrimSpace(text) == "" {
		return command.Result{}, ErrNoCommand
	}
	how.Argv = []string{p.shell, "-c", text}

	return env.Host.Run(ctx, how)
}
