package exec

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the exec type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...ExecProvider) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type. A command may change anything.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:     "exec",
		Summary:  "Commands, run when they are needed",
		NameHelp: "the command, or any name with `command` or `argv`",
		Ensures:  []string{model.EnsurePresent},
		Outputs: []resource.Output{
			{Name: "stdout", Help: "Its output without surrounding blanks, shortened in the middle beyond 32 KiB"},
			{Name: "stderr", Help: "Likewise"},
			{Name: "exit_code", Help: "Its exit code, a number"},
		},
		Reads:     resource.Paths,
		Writes:    resource.Everything,
		Refreshes: true,
	}
}

// New returns properties with the default umask.
func (Type) New() *Spec { return &Spec{Umask: "0022"} }

// Status reads whether the paths in creates and removes exist, and whether the command can start. It runs nothing.
// Any entry satisfies creates, including a dangling link.
func (Type) Status(ctx context.Context, env resource.Env, p ExecProvider, spec *Spec) (*State, error) {
	shell, _ := p.(Shell)
	state := &State{CommonState: model.CommonState{Ensure: model.EnsurePresent}}
	if spec.Creates != "" {
		entry, err := env.Host.Look(spec.Creates)
		if err != nil {
			return nil, err
		}
		state.CreatesSatisfied = entry.Kind != files.Absent
	}
	if spec.Removes != "" {
		entry, err := env.Host.Look(spec.Removes)
		if err != nil {
			return nil, err
		}
		state.RemovesSatisfied = entry.Kind == files.Absent
	}
	state.obstacle = obstacle(ctx, env, spec, string(shell))

	return state, nil
}

// The actions of a plan.
const (
	actionExecute = "execute"
	actionRefresh = "refresh"
)

// Plan reports whether the command is due. A refresh overrides creates, removes and the guards. An
// error means that the command cannot start.
func (Type) Plan(spec *Spec, state *State, refresh bool) (plan resource.Plan, err error) {
	switch {
	case refresh:
		plan.Add(model.Change{Action: actionRefresh, Message: "Would have executed via subscribe"})
	case state.refused:
		return plan, nil
	case !state.satisfied(spec):
		plan.Add(model.Change{Action: actionExecute, Message: "Would have executed"})
		plan.Always = !spec.isGuarded()
	default:
		return plan, nil
	}

	return plan, state.obstacle
}

// Verify checks the exit code and records it in the state. A command that created and removed its paths succeeded
// whatever its code; after a refresh the paths prove nothing, so Apply checks the code.
func (Type) Verify(spec *Spec, outcome resource.Outcome, after *State) error {
	after.ExitCode = outcome.ExitCode
	switch {
	case after.achieved(spec):
		return nil
	case outcome.ExitCode == nil && spec.RefreshOnly:
		return nil
	case outcome.ExitCode == nil:
		return fmt.Errorf("the command did not run")
	default:
		return checkExitCode(spec, outcome)
	}
}

// checkExitCode returns an error for a failing exit code, with the end of stderr.
func checkExitCode(spec *Spec, outcome resource.Outcome) error {
	code := *outcome.ExitCode
	if spec.accepts(code) {
		return nil
	}
	expected := make([]string, len(spec.expected()))
	for i, c := range spec.expected() {
		expected[i] = strconv.Itoa(c)
	}
	err := fmt.Errorf("exit code %d%s, expected %s", code, signalOf(code), strings.Join(expected, ", "))
	stderr, _ := outcome.Values["stderr"].(string)
	if said := command.Excerpt(stderr); said != "" {
		return resource.CommandError{Err: err, Output: said}
	}

	return err
}

// signalOf describes the signal that an exit code above 128 means.
func signalOf(code int) string {
	const signalBase = 128
	if name := unix.SignalName(unix.Signal(code - signalBase)); code > signalBase && name != "" {
		return fmt.Sprintf(" (killed by signal %d, %s)", code-signalBase, name)
	}

	return ""
}

// Outputs returns stdout, stderr and exit_code of a command that ran.
func (Type) Outputs(_ *Spec, _ *State, outcome resource.Outcome) map[string]any {
	return maps.Clone(outcome.Values)
}

// Watches returns the paths in creates and removes, which decide whether the command runs.
func (Type) Watches(_ ExecProvider, spec *Spec) []watch.Point {
	if spec.RefreshOnly {
		return nil
	}

	return resource.WatchPaths(spec.Creates, spec.Removes)
}

// ExecProvider runs commands.
type ExecProvider interface {
	resource.Provider
	// Execute runs how.Argv if it is set, or else the command. A failing exit code is not an error.
	Execute(ctx context.Context, env resource.Env, command string, how command.Command) (command.Result, error)
}

// State is the observed state of an exec; its ensure is always present.
type State struct {
	model.CommonState
	ExitCode         *int `json:"exit_code,omitempty" jsonschema_description:"Exit code of the command; absent when it did not run"`
	CreatesSatisfied bool `json:"creates_satisfied" jsonschema_description:"Whether the path of creates exists"`
	RemovesSatisfied bool `json:"removes_satisfied" jsonschema_description:"Whether the path of removes is absent"`

	// refused is set when a guard forbids the command.
	refused bool
	// obstacle is why the command cannot be started.
	obstacle error
}

// satisfied reports whether only a refresh runs the command.
func (s *State) satisfied(spec *Spec) bool {
	return s.CreatesSatisfied || s.RemovesSatisfied || spec.RefreshOnly
}

// achieved reports whether the paths are as the command should leave them.
func (s *State) achieved(spec *Spec) bool {
	return (spec.Creates != "" || spec.Removes != "") && s.CreatesSatisfied == (spec.Creates != "") && s.RemovesSatisfied == (spec.Removes != "")
}
