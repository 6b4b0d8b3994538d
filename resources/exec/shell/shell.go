// Package shell runs commands with /bin/sh.
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

// priority is the worst one: the shell is used only when it is named.
const priority = 99

// ErrNoCommand is a blank command.
var ErrNoCommand = errors.New("no command to execute")

// Provider passes commands to a shell.
type Provider struct{ shell string }

// New returns the provider for /bin/sh.
func New() Provider { return Provider{shell: "/bin/sh"} }

// Name is shell.
func (Provider) Name() string { return "shell" }

// IsManageable reports whether the shell exists; the error names it.
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

// Execute passes the whole command to the shell, as one argument.
func (p Provider) Execute(ctx context.Context, env resource.Env, text string, how command.Command) (command.Result, error) {
	if strings.TrimSpace(text) == "" {
		return command.Result{}, ErrNoCommand
	}
	how.Argv = []string{p.shell, "-c", text}

	return env.Host.Run(ctx, how)
}
