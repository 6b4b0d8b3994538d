// Package command runs the programs of the node: nothing else starts a process.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/musterfleet/muster/resources/host/paths"
	"golang.org/x/sys/unix"
)

// The errors of a command that cannot be started.
var (
	// ErrNotFound is a program, or the interpreter it names, that does not exist.
	ErrNotFound = errors.New("command not found")
	// ErrBlankName is a program that does not exist and has a blank in its name,
	// which is most often a whole command. It comes with ErrNotFound.
	ErrBlankName = errors.New("is one name, with a blank in it")
	// ErrNotExecutable is a program that muster's user may not execute.
	ErrNotExecutable = errors.New("cannot be executed")
	// ErrNoDir is a working directory of a command that is missing.
	ErrNoDir = errors.New("working directory does not exist")
)

// Runner runs commands. It is safe for concurrent use. Make it with New.
type Runner struct {
	onStart func(argv []string)
	groups  *cgroups
	waiters waiters
}

// New returns a runner that calls onStart, unless nil, right before each start.
func New(onStart func(argv []string)) *Runner {
	return &Runner{onStart: onStart, groups: findCgroups()}
}

// Command is a program to run.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is searched in
	// the absolute directories of PATH, one with a slash is relative to Dir.
	Argv []string
	// Dir is the working directory, opened by paths.OpenDir; empty means muster's own.
	Dir string
	// Env is added to the environment, which is muster's own without MUSTER_* and
	// NATS_*; of two values of a name the later counts.
	Env []string
	// OnlyEnv makes Env the whole environment.
	OnlyEnv bool
	// Path becomes PATH and overrides Env; empty leaves PATH alone.
	Path string
	// Stdin is what the command reads; nil means nothing.
	Stdin io.Reader
	// Stdout, when set, gets the standard output, which Result then lacks.
	Stdout io.Writer
	// OnLine, when set, gets each line of output, without its end; stderr names
	// the stream. Calls never overlap. A line longer than 64 KiB comes in pieces,
	// with an ellipsis where it is cut.
	OnLine func(line string, stderr bool)
	// Tied kills the command when muster ends, even when muster is killed; what
	// the command has started itself is left alone.
	Tied bool
	// EndGroup kills what the command has left running once it has ended.
	EndGroup bool
}

// Result is the outcome of a command that ran to its end.
type Result struct {
	// ExitCode is 128 plus the signal's number for a command that a signal ended.
	ExitCode int
	// Killed is set when a signal ended it.
	Killed bool
	Stdout Output
	Stderr Output
}

// exitTerminated is the exit code of what SIGTERM ended.
const exitTerminated = 128 + int(unix.SIGTERM)

// drainDelay is how long output is still read after a command has ended while a
// background process holds its pipes.
const drainDelay = 2 * time.Second

// Run runs a command in a session of its own and waits for it. An exit code
// other than 0 is not an error. When ctx ends all that it has started is killed,
// also in other sessions, and the error wraps context.Cause(ctx); the result then
// holds the output so far. A program that cannot be started is an error that
// wraps ErrNotFound, ErrNoDir, paths.ErrUnsafe or the system's error. A background process that
// outlives the command is left alone, unless EndGroup is set: its output is read
// for 2 s more.
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	env := environment(c)
	program, err := program(c, env)
	if err != nil {
		return Result{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return Result{}, commandError(c, err)
	}
	stdout, stderr := streams(c.OnLine)
	if c.Tied {
		// The signal is sent when the thread that started the command ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	group := r.groups.start()
	if group != nil {
		defer group.end()
	}
	attr := attributes(c, group)
	dir, err := openDir(c.Dir)
	if err != nil {
		return Result{}, err
	}
	killed := false
	prepare := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, c.Argv[1:]...)
		cmd.Args[0], cmd.Dir, cmd.Env, cmd.Stdin = c.Argv[0], dir.path(), env, c.Stdin
		cmd.Stdout, cmd.Stderr = stdout, stderr
		if c.Stdout != nil {
			cmd.Stdout = c.Stdout
		}
		cmd.SysProcAttr = attr
		cmd.WaitDelay = drainDelay
		cmd.Cancel = func() error {
			killed = true
			return kill(group, cmd.Process.Pid, env)
		}
		return cmd
	}
	if r.onStart != nil {
		r.onStart(c.Argv)
	}
	cmd, err := start(ctx, prepare)
	if err != nil && group != nil && ctx.Err() == nil {
		// Kernels before 5.7 and some filters of system calls cannot start it there.
		group.end()
		group, attr.UseCgroupFD = nil, false
		cmd, err = start(ctx, prepare)
	}
	dir.close()
	if err != nil {
		return Result{}, startError(c, program, err)
	}
	r.waiters.begin(cmd.Process.Pid)
	if c.EndGroup {
		endGroup(group, cmd.Process.Pid, env)
	}
	err = cmd.Wait()
	result := Result{ExitCode: exitCode(cmd.ProcessState), Killed: !cmd.ProcessState.Exited(), Stdout: stdout.end(), Stderr: stderr.end()}
	if r.waiters.end(cmd.Process.Pid) && result.ExitCode == exitTerminated {
		result.ExitCode, result.Killed = 0, false
	}
	switch {
	case killed && result.ExitCode != 0:
		return result, commandError(c, context.Cause(ctx))
	case killed || hasEnded(err):
		return result, nil
	default:
		return result, commandError(c, err)
	}
}

// attributes returns how a command is started, which may be in a group.
func attributes(c Command, group *cgroup) *syscall.SysProcAttr {
	// Without a terminal a question fails instead of waiting for an answer.
	attr := &syscall.SysProcAttr{Setsid: true}
	if c.Tied {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.dir.Fd())
	}

	return attr
}

// hasEnded reports whether a command that was waited for came to its end, with
// whatever exit code.
func hasEnded(err error) bool {
	var exit *exec.ExitError

	return err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay)
}

// endGroup waits for a command and kills the rest. The command is not reaped
// before, so its number cannot be reused.
func endGroup(group *cgroup, pid int, env []string) {
	if paths.Retry(func() error { return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) }) == nil {
		_ = kill(group, pid, env)
	}
}

// kill kills a command and all that it has started.
func kill(group *cgroup, pid int, env []string) error {
	if group != nil && group.kill() == nil {
		return nil
	}
	killTree(pid, env)

	return unix.Kill(-pid, unix.SIGKILL)
}

// start starts a command, and retries while its file is "busy": a child of
// another command holds it open for writing until its own exec.
func start(ctx context.Context, prepare func() *exec.Cmd) (*exec.Cmd, error) {
	const tries = 8
	wait := time.Millisecond
	for try := 1; ; try++ {
		cmd := prepare()
		err := cmd.Start()
		if err != nil && ctx.Err() != nil {
			// It reports whether the context ended, but not why.
			return nil, context.Cause(ctx)
		}
		if err == nil || try == tries || !errors.Is(err, unix.ETXTBSY) {
			return cmd, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// startError names the missing interpreter, which the system leaves out.
func startError(c Command, program string, err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: the interpreter that %s names in its first line", ErrNotFound, program)
	}

	return commandError(c, err)
}

func commandError(c Command, err error) error { return fmt.Errorf("%s: %w", c.Argv[0], err) }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}

	return state.ExitCode()
}
