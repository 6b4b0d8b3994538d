package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	c, err := how(ctx, env, spec)
	if err != nil {
		return false, fmt.Errorf("%s could not be run: %w", guard, err)
	}
	if err := joinGroups(ctx, env, &c); err != nil {
		return false, fmt.Errorf("%s could not be run: %w", guard, err)
	}
	result, err := p.Execute(ctx, env, command, c)
	switch {
	case err != nil:
		return false, fmt.Errorf("%s could not be run: %w", guard, missing(c, spec.split(command), err))
	case result.Killed:
		return false, fmt.Errorf("%s did not finish%s", guard, signalOf(result.ExitCode))
	}
	env.Log.DebugContext(ctx, "guard evaluated", "guard", guard, "exit_code", result.ExitCode)

	return result.ExitCode == 0, nil
}

// obstacle returns why the command cannot be started. program is the shell, if one runs it.
func obstacle(ctx context.Context, env resource.Env, spec *Spec, program string) error {
	c, err := how(ctx, env, spec)
	if err != nil {
		return err
	}
	c.Argv = []string{program}
	if program == "" {
		c.Argv = spec.words()
	}
	err = command.Check(c)
	if errors.Is(err, fs.ErrPermission) && c.As.IsOther() {
		// A group of another service than the files of the node may permit it.
		if err := joinGroups(ctx, env, &c); err != nil {
			return err
		}
		err = command.Check(c)
	}

	return missing(c, spec.words(), err)
}

// joinGroups adds the groups that only a name service knows to the account of a command.
func joinGroups(ctx context.Context, env resource.Env, c *command.Command) error {
	if c.As == nil || os.Geteuid() != 0 {
		return nil
	}

	return env.Host.JoinGroups(ctx, c.As)
}

// missing names the directory or the program of a command as something that another resource may
// provide. words are nil for a command that a shell splits.
func missing(c command.Command, words []string, err error) error {
	switch {
	case errors.Is(err, command.ErrNoDir), errors.Is(err, command.ErrDirDenied):
		return resource.PrerequisiteError{Needs: []string{resource.PathNeed(filepath.Clean(c.Dir))}, Err: err}
	case errors.Is(err, command.ErrNotFound):
		if words == nil {
			return err
		}
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

// stateVariable is the state directory of muster, which another user cannot use. A muster in a command of that
// user has its own.
const stateVariable = "MUSTER_STATE_DIR="

// how returns a command without its arguments. An unknown user or group is a resource.PrerequisiteError.
func how(ctx context.Context, env resource.Env, spec *Spec) (c command.Command, err error) {
	c = command.Command{Dir: spec.Cwd, Path: spec.Path}
	if c.Umask, err = spec.umask(); err != nil {
		return c, err
	}
	if spec.User != "" || spec.Group != "" {
		if c.As, err = resource.RunAs(ctx, env.Host, spec.User, spec.Group); err != nil {
			return c, err
		}
	}
	if spec.User != "" && c.Dir == "" {
		c.Dir = "/"
	}
	c.Env = slices.Concat(spec.Environment, env.RunEnv)
	if c.As.IsOther() {
		c.Env = slices.DeleteFunc(c.Env, func(entry string) bool { return strings.HasPrefix(entry, stateVariable) })
	}

	return c, nil
}

// Apply runs the command. The values are its output and exit code.
func (Type) Apply(ctx context.Context, env resource.Env, p ExecProvider, spec *Spec, plan resource.Plan) (resource.Outcome, error) {
	c, err := how(ctx, env, spec)
	if err == nil {
		err = joinGroups(ctx, env, &c)
	}
	if err != nil {
		return resource.Outcome{Untouched: true}, err
	}
	if spec.Stdin != "" {
		c.Stdin = strings.NewReader(spec.Stdin)
	}
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
		return resource.Outcome{}, missing(c, spec.words(), err)
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

// Relations order a command after its directory, its program and their parents, its user and group and the path in
// removes, and before resources that need the path in creates, or that remove the directory of the path in removes.
func (Type) Relations(spec *Spec) resource.Relations {
	var out resource.Relations
	if spec.Creates != "" {
		out.SkipIfExists = []string{resource.PathNeed(filepath.Clean(spec.Creates))}
		out.Provides = resource.Provides(out.SkipIfExists...)
	}
	if spec.Removes != "" {
		path := filepath.Clean(spec.Removes)
		out.SkipIfAbsent, out.Removes = []string{resource.PathNeed(path)}, []string{resource.PathNeed(path)}
		out.Provides = append(out.Provides, resource.Provision{What: resource.EmptiedNeed(filepath.Dir(path))})
		out.Needs = resource.Needs(out.Removes...)
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
	out.Needs = append(out.Needs, resource.AccountNeeds(spec.User, spec.Group)...)

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
