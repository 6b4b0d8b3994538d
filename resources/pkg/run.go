package pkg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// LockTimeout is the default wait for the lock of another process.
const LockTimeout = time.Minute

// searchPath has the programs of maintainer scripts, even if muster was started with a shorter PATH.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const lockPoll = time.Second

// waiting matches a package manager that waits for another process. refused matches a package manager that
// does not wait.
var (
	waiting = regexp.MustCompile(`(?i)^waiting for process with pid`)
	refused = regexp.MustCompile(`(?m)^.*(Could not get lock|Unable to acquire the dpkg frontend lock|Unable to lock|lock was locked by another process|can't create transaction lock).*$`)
)

// waitText reports a wait, even if the wait is cancelled.
const waitText = "waiting for another process that changes packages"

// Ask runs a command that changes nothing and returns its lines of stdout. A failing exit code is not an
// error.
func Ask(ctx context.Context, env resource.Env, argv ...string) ([]string, command.Result, error) {
	var lines []string
	how := newCommand(env, argv, nil)
	how.OnLine = func(line string, stderr bool) {
		if !stderr {
			lines = append(lines, line)
		}
	}
	result, err := env.Host.Run(ctx, how)

	return lines, result, err
}

func newCommand(env resource.Env, argv, environment []string) command.Command {
	c := command.Command{Argv: argv, Path: searchPath, Env: []string{"LC_ALL=C.UTF-8", "LANGUAGE="}}
	c.Env = append(append(c.Env, environment...), env.RunEnv...)

	return c
}

// Changer runs commands of a package manager that change packages.
type Changer struct {
	// Environment is added to the commands' environment.
	Environment []string
	// Remedies explain the errors of the commands.
	Remedies []Remedy
	// Timeout bounds the wait for the lock of another process.
	Timeout time.Duration
	// Begins matches the line after which a command changes packages.
	Begins *regexp.Regexp
	// Scripts explain the failure of a script in a command that succeeds.
	Scripts []Remedy
	// Declined is the last line of a command that only simulates.
	Declined string
}

// Change is Run without the output.
func (c Changer) Change(ctx context.Context, env resource.Env, argv ...string) error {
	_, err := c.Run(ctx, env, argv...)

	return err
}

// Run runs a command and returns the lines of both streams. It waits while
// another process holds the lock and logs that once; after Timeout it returns
// ErrLocked. Other failures are errors of Explain. When ctx ends the command is
// killed, unless it is already changing packages: half a change would block
// every later one. It then runs to its end, and Run returns the cause of ctx.
func (c Changer) Run(ctx context.Context, env resource.Env, argv ...string) ([]string, error) {
	w := &waiter{until: time.Now().Add(c.Timeout), timeout: c.Timeout, warn: func(line string) {
		env.Log.WarnContext(ctx, waitText, "output", line, "at_most", c.Timeout.String())
	}}
	for {
		lines, result, err := c.once(ctx, env, w, argv)
		if err != nil {
			return lines, err
		}
		if result.ExitCode == 0 || c.Declined != "" && slices.Contains(lines, c.Declined) {
			return lines, c.scripts(argv, lines)
		}
		err = Explain(argv, result, c.Remedies)
		line := strings.TrimSpace(refused.FindString(result.Stderr.String() + "\n" + result.Stdout.String()))
		switch {
		// Without permission the output resembles the output for a held lock.
		case line == "", errors.Is(err, ErrNotRoot):
			return nil, err
		case !time.Now().Before(w.until):
			return nil, w.timeoutError(line)
		}
		w.logOnce(line)
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, cancelledWait(ctx, line)
		}
	}
}

func (c Changer) scripts(argv, lines []string) error {
	if f := explain(argv, c.Scripts, strings.Join(lines, "\n")); f != nil {
		return f
	}

	return nil
}

func cancelledWait(ctx context.Context, line string) error {
	return resource.CommandError{Err: fmt.Errorf("%s: %w", waitText, context.Cause(ctx)), Output: line}
}

// once runs the command, and kills it when it waits for the lock too long:
// without the lock it has changed nothing.
func (c Changer) once(ctx context.Context, env resource.Env, w *waiter, argv []string) ([]string, command.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, command.Result{}, fmt.Errorf("%s: %w", argv[0], err)
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	// A command that changes packages is not killed.
	var mu sync.Mutex
	begun := false
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if cause := context.Cause(ctx); begun {
			env.Log.WarnContext(ctx, "package change in progress, waiting for its end", "command", argv[0], "reason", cause)
		} else {
			stop(cause)
		}
	})()
	defer w.end()
	var lines []string
	how := newCommand(env, argv, c.Environment)
	how.OnLine = func(line string, _ bool) {
		lines = append(lines, line)
		env.Log.DebugContext(ctx, line, "command", argv[0])
		if c.Begins != nil && c.Begins.MatchString(line) {
			mu.Lock()
			begun = true
			mu.Unlock()
		}
		if w.end(); waiting.MatchString(line) {
			w.begin(line, stop)
		}
	}
	result, err := env.Host.Run(running, how)
	switch {
	case err != nil && errors.Is(context.Cause(running), ErrLocked):
		return nil, result, context.Cause(running)
	case err != nil && ctx.Err() != nil && w.timer != nil:
		return nil, result, cancelledWait(ctx, w.line)
	case err == nil && ctx.Err() != nil && result.ExitCode == 0:
		return lines, result, fmt.Errorf("%s: %w; it was already changing packages and finished: the change is done", argv[0], context.Cause(ctx))
	}

	return lines, result, err
}

// waiter is the wait for another process over all tries of a command. A
// command's lines come one at a time and before its result, so it needs no lock.
type waiter struct {
	until   time.Time
	timeout time.Duration
	warn    func(line string)
	logged  bool
	// timer ends a wait within the command, line announced that.
	timer *time.Timer
	line  string
}

func (w *waiter) logOnce(line string) {
	if !w.logged {
		w.warn(line)
	}
	w.logged = true
}

func (w *waiter) begin(line string, giveUp context.CancelCauseFunc) {
	w.logOnce(line)
	w.line = line
	w.timer = time.AfterFunc(time.Until(w.until), func() { giveUp(w.timeoutError(line)) })
}

func (w *waiter) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *waiter) timeoutError(line string) error {
	err := fmt.Errorf("%w, still after %s: wait until it has ended, or set retry and delay", ErrLocked, w.timeout)

	return resource.CommandError{Err: err, Output: line}
}
