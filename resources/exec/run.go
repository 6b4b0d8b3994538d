package exec

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// maxValue limits the output that other resources may use.
const maxValue = 32 << 10

// HasGuards reports whether guards decide if the command runs. A refresh overrides them.
func (Type) HasGuards(spec *Spec, state *State, refresh bool) bool {
	return (spec.OnlyIf != "" || spec.Unless != "") && !refresh && !state.satisfied(spec)
}

// EvalGuards runs the guards and returns the state with their results.
func (Type) EvalGuards(ctx context.Context, env resource.Env, p ExecProvider, spec *Spec, state *State) (*State, error) {
	answered := *state
	answered.refused = false
	for _, guard := range []struct {
		name, command string
		want          bool
	}{{"onlyif", spec.OnlyIf, true}, {"unless", spec.Unless, false}} {
		if guard.command == "" {
			continue
		}
		holds, err := evalGuard(ctx, env, p, spec, guard.name, guard.command)
		if answered.refused = err != nil || holds != guard.want; answered.refused {
			return &answered, err
		}
	}

	return &answered, nil
}

// evalGuard runs a guard and reports whether its exit code is 0. A guard that does not complete is
// an error.
func evalGuard(ctx context.Context, env resource.Env, p ExecProvider, spec *Spec, guard, command string) (bool, error) {
	result, err := p.Execute(ctx, env, command, how(env, spec))
	switch {
	case err != nil:
		return false, fmt.Errorf("%s could not be run: %w", guard, missing(env, spec, spec.split(command), err))
	case result.Killed:
		return false, fmt.Errorf("%s did not finish%s", guard, signalOf(result.ExitCode))
	}
	env.Log.DebugContext(ctx, "guard evaluated", "guard", guard, "exit_code", result.ExitCode)

	return result.ExitCode == 0, nil
}

func obstacle(env resource.Env, spec *Spec, program string) error {
	c := how(env, spec)
	c.Argv = []string{program}
	if program == "" {
		c.Argv = spec.words()
	}

	return missing(env, spec, spec.words(), command.Check(c))
}

// missing names the directory or the program of a command as something that another resource may
// provide. words are nil for a command that a shell splits.
func missing(env resource.Env, spec *Spec, words []string, err error) error {
	switch {
	case errors.Is(err, command.ErrNoDir):
		return resource.PrerequisiteError{Needs: []string{resource.PathNeed(filepath.Clean(spec.Cwd))}, Err: err}
	case errors.Is(err, command.ErrNotFound):
		if words == nil {
			return err
		}
		c := how(env, spec)
		c.Argv = words
		var needs []string
		for _, program := range command.Programs(c) {
			needs = append(needs, resource.PathNeed(program))
		}
		if len(needs) > 0 {
			return resource.PrerequisiteError{Needs: needs, Err: err}
		}
	}

	return err
}

// how returns a command without its arguments.
func how(env resource.Env, spec *Spec) command.Command {
	c := command.Command{Dir: spec.Cwd, Path: spec.Path}
	c.Env = append(append(c.Env, spec.Environment...), env.RunEnv...)

	return c
}

// Apply runs the command. The values are its output and exit code.
func (Type) Apply(ctx context.Context, env resource.Env, p ExecProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	c := how(env, spec)
	if spec.LogOutput && !spec.Sensitive {
		out := outputLog{
			emit:   func(line, stream string) { env.Log.InfoContext(ctx, line, "stream", stream) },
			stdout: loggedStream{name: "stdout"}, stderr: loggedStream{name: "stderr"},
		}
		defer out.end()
		c.OnLine = out.line
	}
	c.Argv = spec.Argv
	if err := env.Host.ReloadPendingUnits(ctx); err != nil {
		env.Log.WarnContext(ctx, "unit files not reloaded before a command", "error", err)
	}
	result, err := p.Execute(ctx, env, spec.command(), c)
	if err != nil {
		if said := command.Excerpt(result.Stderr.String()); said != "" {
			err = resource.CommandError{Err: err, Output: said}
		}
		return resource.Outcome{}, missing(env, spec, spec.words(), err)
	}
	outcome := resource.Outcome{ExitCode: &result.ExitCode, Values: map[string]any{
		"stdout": shortened(result.Stdout), "stderr": shortened(result.Stderr), "exit_code": result.ExitCode,
	}}
	if plan.Has(actionRefresh) {
		if err := checkExitCode(spec, outcome); err != nil {
			return outcome, fmt.Errorf("%w: %w", model.ErrDesiredStateFailed, err)
		}
	}

	return outcome, nil
}

// shortened returns trimmed output, shortened to its two ends.
func shortened(o command.Output) string {
	text := strings.TrimSpace(o.String())
	if len(text) > maxValue {
		half := maxValue / 2
		dropped := o.Dropped + int64(len(text)-2*half)
		text = fmt.Sprintf("%s\n… %d bytes dropped …\n%s", text[:half], dropped, text[len(text)-half:])
	}

	// Documents are UTF-8, but the output of commands may be anything.
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Relations order a command after its directory, its program and their parents, and before resources
// that need the path in creates.
func (Type) Relations(spec *Spec) resource.Relations {
	var out resource.Relations
	if spec.Creates != "" {
		out.SkipIfExists = []string{resource.PathNeed(filepath.Clean(spec.Creates))}
		out.Provides = resource.Provides(out.SkipIfExists...)
	}
	need := func(path string) {
		for _, need := range append(resource.Needs(resource.PathNeed(path)), resource.NeedsAbove(path)...) {
			if !slices.Contains(out.Needs, need) {
				out.Needs = append(out.Needs, need)
			}
		}
	}
	if spec.Cwd != "" {
		need(filepath.Clean(spec.Cwd))
	}
	for _, words := range [][]string{spec.words(), spec.split(spec.OnlyIf), spec.split(spec.Unless)} {
		if len(words) > 0 && filepath.IsAbs(words[0]) {
			need(filepath.Clean(words[0]))
		}
	}

	return out
}

const (
	// maxLogged limits the logged part of each end of a stream, so that a command cannot fill the
	// disk or the memory.
	maxLogged = 64 << 10
	// lineCost is the overhead of a line in a log.
	lineCost = 64
)

// outputLog logs the output of a command: the beginning of each stream line by line during the run, and
// the end of a longer stream after the command ended.
type outputLog struct {
	emit           func(line, stream string)
	stdout, stderr loggedStream
}

type loggedStream struct {
	name   string
	logged int
	// rest holds the last lines that are not logged yet, held is their cost.
	rest    []string
	held    int
	dropped int
}

func (l *outputLog) line(line string, stderr bool) {
	s, cost := &l.stdout, len(line)+lineCost
	if stderr {
		s = &l.stderr
	}
	if len(s.rest) == 0 && s.logged+cost <= maxLogged {
		s.logged += cost
		l.emit(line, s.name)
		return
	}
	s.rest, s.held = append(s.rest, line), s.held+cost
	for s.held > maxLogged && len(s.rest) > 1 {
		s.held -= len(s.rest[0]) + lineCost
		s.rest = s.rest[1:]
		s.dropped++
	}
}

func (l *outputLog) end() {
	for _, s := range []*loggedStream{&l.stdout, &l.stderr} {
		if s.dropped > 0 {
			l.emit(fmt.Sprintf("… %d lines dropped …", s.dropped), s.name)
		}
		for _, line := range s.rest {
			l.emit(line, s.name)
		}
	}
}
