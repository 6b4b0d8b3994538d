// Package command runs the programs of the node. No other package starts a process.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Errors of starting a command.
var (
	// ErrNotFound means that a program or its interpreter does not exist.
	ErrNotFound = errors.New("command not found")
	// ErrBlankName means that a missing program has a blank in its name, which is usually a complete command.
	// It comes with ErrNotFound.
	ErrBlankName = errors.New("is one name, with a blank in it")
	// ErrNotExecutable means that muster's user may not execute the program.
	ErrNotExecutable = errors.New("cannot be executed")
	// ErrNoDir means that the working directory of a command does not exist.
	ErrNoDir = errors.New("working directory does not exist")
	// ErrDirDenied means that the user of a command may not enter its working directory.
	ErrDirDenied = errors.New("the user of the command may not enter the working directory")
)

// Runner runs commands. It is safe for concurrent use. Create it with New.
type Runner struct {
	onStart func(argv []string)
	groups  *cgroups
	waiters waiters

	inherited    sync.Once
	inheritedErr error
}

// New returns a runner. It calls onStart, unless nil, immediately before each start.
func New(onStart func(argv []string)) *Runner {
	if onStart == nil {
		onStart = func([]string) {}
	}

	return &Runner{onStart: onStart, groups: findCgroups()}
}

// Command is a program to run.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is searched in the absolute directories
	// of PATH. A name with a slash is relative to Dir.
	Argv []string
	// Dir is the working directory, opened by paths.OpenDir; empty means muster's own.
	Dir string
	// Env is added to the environment, which is muster's own without MUSTER_* and NATS_*. The last value of a
	// name wins.
	Env []string
	// OnlyEnv makes Env the complete environment.
	OnlyEnv bool
	// Path is the value of PATH and overrides Env. If it is empty, PATH is unchanged.
	Path string
	// As is the account of the command; nil means muster's own. The command has the variables of the account, and
	// of muster's own environment only PATH and the variables of language and time zone. Its session keyring is
	// empty. Only root may use another account: ErrNotRoot.
	As *Account
	// Umask is the umask of the command; nil means muster's own.
	Umask *int
	// Stdin is the standard input; nil means empty.
	Stdin io.Reader
	// Stdout, if set, receives the standard output, which Result then omits.
	Stdout io.Writer
	// OnLine, if set, receives each line of output without its end. stderr names the stream. Calls never
	// overlap. A line longer than 64 KiB comes in parts, with an ellipsis at each cut.
	OnLine func(line string, stderr bool)
	// Tied kills the command when muster ends, also when muster is killed. Child processes of the command
	// continue. It excludes As and Umask.
	Tied bool
	// EndGroup kills the remaining child processes after the command has ended.
	EndGroup bool
}

// Result is the result of a completed command.
type Result struct {
	// ExitCode is 128 plus the number of the signal that ended the command.
	ExitCode int
	// Killed means that a signal ended the command.
	Killed bool
	Stdout Output
	Stderr Output
}

const exitTerminated = 128 + int(unix.SIGTERM)

// drainDelay limits the reading of output after a command has ended while a background process holds its
// pipes.
const drainDelay = 2 * time.Second

// Run runs a command in its own session and waits for it. A nonzero exit code is not an error. When ctx ends,
// Run kills all its processes, also in other sessions, and returns the output so far with an error that wraps
// context.Cause(ctx). If the program cannot start, the error wraps ErrNotFound, ErrNoDir, paths.ErrUnsafe or
// the system's error. Without EndGroup, background processes continue, and Run reads their output for 2 s
// more.
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	env := environment(c)
	program, dir, closeDir, err := program(c, env)
	if err != nil {
		return Result{}, err
	}
	if err := context.Cause(ctx); err != nil {
		closeDir()
		return Result{}, commandError(c, err)
	}
	stdout, stderr := streams(c.OnLine)
	if c.Tied {
		// The kernel sends the signal when the thread that started the command ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	group := r.groups.start()
	defer func() { group.end() }()
	killed := false
	prepare := func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, c.Argv[1:]...)
		cmd.Args[0], cmd.Dir, cmd.Env, cmd.Stdin = c.Argv[0], dir, env, c.Stdin
		cmd.Stdout, cmd.Stderr = cmp.Or[io.Writer](c.Stdout, stdout), stderr
		cmd.SysProcAttr, cmd.WaitDelay = attributes(c, group), drainDelay
		cmd.Cancel = func() error {
			killed = true
			return kill(group, cmd.Process.Pid, env)
		}
		return cmd
	}
	r.onStart(c.Argv)
	cmd, err := r.startIn(ctx, c, &group, prepare)
	closeDir()
	switch {
	case errors.Is(err, unix.ENOENT): // the program exists
		return Result{}, fmt.Errorf("%w: the interpreter that %s names in its first line", ErrNotFound, program)
	case err != nil:
		return Result{}, commandError(c, err)
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

func attributes(c Command, group *cgroup) *syscall.SysProcAttr {
	// Without a terminal a prompt fails instead of waiting.
	attr := &syscall.SysProcAttr{Setsid: true}
	if c.Tied {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.dir.Fd())
	}
	if c.As != nil && os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: c.As.UID, Gid: c.As.GID, Groups: c.As.Groups}
	}

	return attr
}

// hasEnded reports whether a command ended by itself, with any exit code.
func hasEnded(err error) bool {
	var exit *exec.ExitError

	return err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay)
}

// endGroup waits for the end of a command, and kills its remaining processes. The command is reaped later, so
// that its number is not reused.
func endGroup(group *cgroup, pid int, env []string) {
	err := paths.Retry(func() error { return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) })
	if err == nil {
		_ = kill(group, pid, env)
	}
}

func kill(group *cgroup, pid int, env []string) error {
	if group != nil && group.kill() == nil {
		return nil
	}
	killTree(pid, env)

	return unix.Kill(-pid, unix.SIGKILL)
}

// startIn starts a command in a group. It removes the group if the system cannot start a command in it: kernels
// before 5.7, and some filters of system calls.
func (r *Runner) startIn(ctx context.Context, c Command, group **cgroup, prepare func() *exec.Cmd) (*exec.Cmd, error) {
	cmd, err := r.start(ctx, c, prepare)
	if err != nil && *group != nil && ctx.Err() == nil {
		(*group).end()
		*group = nil
		cmd, err = r.start(ctx, c, prepare)
	}

	return cmd, err
}

// start starts a command. It retries while the program file is busy, because a child of another command may
// hold it open for writing until its own exec.
func (r *Runner) start(ctx context.Context, c Command, prepare func() *exec.Cmd) (*exec.Cmd, error) {
	const tries = 8
	wait := time.Millisecond
	for try := 1; ; try++ {
		cmd := prepare()
		err := r.startOne(c, cmd)
		if err != nil && ctx.Err() != nil {
			// The error does not contain the cause of the context.
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

func (r *Runner) startOne(c Command, cmd *exec.Cmd) error {
	if !c.needsThread() {
		return cmd.Start()
	}

	return paths.OnThread(func() error {
		if err := r.prepareThread(c); err != nil {
			return err
		}

		return cmd.Start()
	})
}

func commandError(c Command, err error) error { return fmt.Errorf("%s: %w", c.Argv[0], err) }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}

	return state.ExitCode()
}

// Interactive runs an interactive program of the user, such as an editor, and waits for it. The program
// shares the input, output, terminal and environment of this process, and receives the signals of the
// terminal. Interactive returns the exit code. The error wraps ErrNotFound.
func Interactive(argv []string) (exitCodeOf int, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		return exitCode(cmd.ProcessState), nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%s: %w", argv[0], ErrNotFound)
	default:
		return 0, err
	}
}
