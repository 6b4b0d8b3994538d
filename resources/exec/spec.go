// Package exec is the resource type for commands: what runs, when, and which
// exit codes mean success.
package exec

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
)

// Spec are the properties of an exec.
type Spec struct {
	model.Common
	Command     string   `json:"command,omitempty" line:"posix" list:"argv" filled:"true" sensitive:"true" jsonschema_description:"Command to run; default: the name"`
	Argv        []string `json:"argv,omitempty" sensitive:"true" jsonschema_description:"Program and arguments, each taken as it is; instead of command, with provider posix"`
	Cwd         string   `json:"cwd,omitempty" filled:"true" jsonschema_description:"Working directory"`
	Environment []string `json:"environment,omitempty" short:"e" sensitive:"true" jsonschema_description:"KEY=VALUE entries added to the environment"`
	Path        string   `json:"path,omitempty" filled:"true" jsonschema_description:"PATH of the command: absolute directories separated by colons; the command is searched there"`
	Returns     []int    `json:"returns,omitempty" jsonschema_description:"Exit codes that mean success; default [0]"`
	Creates     string   `json:"creates,omitempty" filled:"true" jsonschema_description:"A path; the command is not run when it exists"`
	RefreshOnly bool     `json:"refresh_only,omitempty" alias:"refreshonly" jsonschema_description:"Run only when a resource it subscribes to changed"`
	LogOutput   bool     `json:"logoutput,omitempty" alias:"log_output" jsonschema_description:"Log its output, line by line"`
	OnlyIf      string   `json:"onlyif,omitempty" flags:"exec-if" line:"posix" filled:"true" sensitive:"true" jsonschema_description:"A command; run only when its exit code is 0"`
	Unless      string   `json:"unless,omitempty" flags:"exec-unless" line:"posix" filled:"true" sensitive:"true" jsonschema_description:"A command; do not run when its exit code is 0"`
}

// command returns the command, by default the name.
func (s *Spec) command() string {
	if s.Command == "" {
		return s.Name
	}

	return s.Command
}

// words returns the command as program and arguments, nil when a shell splits it.
func (s *Spec) words() []string {
	if s.Argv != nil {
		return s.Argv
	}

	return s.split(s.command())
}

// split returns the words of a command line, nil when a shell splits it.
func (s *Spec) split(line string) []string {
	if s.Provider == shellProvider {
		return nil
	}
	words, _ := command.Split(line)

	return words
}

// expected returns the exit codes that mean success.
func (s *Spec) expected() []int {
	if len(s.Returns) == 0 {
		return []int{0}
	}

	return s.Returns
}

// accepts reports whether an exit code means success.
func (s *Spec) accepts(code int) bool { return slices.Contains(s.expected(), code) }
