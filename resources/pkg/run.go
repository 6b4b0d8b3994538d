package pkg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// LockTimeout is how long the lock of another process is waited for by default.
const LockTimeout = time.Minute

// searchPath has the programs that maintainer scripts rely on, also where
// muster itself was started with less.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lockPoll is how often a command is tried again that does not wait by itself.
const lockPoll = time.Second

// waiting is how package managers say that they wait for another process, and
// refused how they say that they do not.
var (
	waiting = regexp.MustCompile(`(?i)^waiting for process with pid`)
	refused = regexp.MustCompile(`(?m)^.*(Could not get lock|Unable to acquire the dpkg frontend lock|Unable to lock|can't create transaction lock).*$`)
)

// waitText is what is said of a wait, also of one that was broken off.
const waitText = "waiting for another process that changes packages"

// Ask runs a command that changes nothing and gives the lines it printed,
// however many. An exit code is no error.
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

// Changer runs the commands of a package manager that change something.
type Changer struct {
	// Environment is added to that of the commands.
	Environment []string
	// Remedies explain what the commands may say.
	Remedies []Remedy
	// Timeout is how long the lock of another process is waited for.
	Timeout time.Duration
	// Begins is a line after which a command changes packages.
	Begins *regexp.Regexp
}

// Change is Run without what the command printed.
func (c Changer) Change(ctx context.Context, env resource.Env, argv ...string) error {
	_, err := c.Run(ctx, env, argv...)

	return err
}

// Run runs a command and gives the lines it printed to either stream. While another
// process holds the lock it waits, and says so once; after Timeout that is an
// error that wraps ErrLocked. Another failure is an error by Explain. When ctx ends
// the command is broken off, but not once it changes packages: half of a change is
// in the way of every later one. It then ends by itself, and Run gives the cause of ctx.
func (c Changer) Run(ctx context.Context, env resource.Env, argv ...string) ([]string, error) {
	w := &waiter{until: time.Now().Add(c.Timeout), timeout: c.Timeout, tell: func(line string) {
		env.Log.WarnContext(ctx, waitText, "said", line, "at_most", c.Timeout.String())
	}}
	for {
		lines, result, err := c.once(ctx, env, w, argv)
		if err != nil || result.ExitCode == 0 {
			return lines, err
		}
		err = Explain(argv, result, c.Remedies)
		line := strings.TrimSpace(refused.FindString(result.Stderr.String() + "\n" + result.Stdout.String()))
		switch {
		// Who may not take the lock is told much the same as who finds it taken.
		case line == "", errors.Is(err, ErrNotRoot):
			return nil, err
		case !time.Now().Before(w.until):
			return nil, w.inVain(line)
		}
		w.say(line)
		if !pause(ctx) {
			return nil, brokenOff(ctx, line)
		}
	}
}

// pause is false when ctx ends before the command may be tried again.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(lockPoll):
		return true
	case <-ctx.Done():
		return false
	}
}

// brokenOff is a wait that ended with ctx.
func brokenOff(ctx context.Context, line string) error {
	return resource.Said{Err: fmt.Errorf("%s: %w", waitText, context.Cause(ctx)), Output: line}
}

// once runs the command, and breaks it off when it waits too long: before it
// has the lock it has not changed anything.
func (c Changer) once(ctx context.Context, env resource.Env, w *waiter, argv []string) ([]string, command.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, command.Result{}, fmt.Errorf("%s: %w", argv[0], err)
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	held := &change{stop: stop, tell: func(cause error) {
		env.Log.WarnContext(ctx, "package change in progress, waiting for its end", "command", argv[0], "reason", cause)
	}}
	defer context.AfterFunc(ctx, func() { held.breakOff(context.Cause(ctx)) })()
	defer w.goOn()
	var lines []string
	how := newCommand(env, argv, c.Environment)
	how.OnLine = func(line string, _ bool) {
		lines = append(lines, line)
		env.Log.DebugContext(ctx, line, "command", argv[0])
		if c.Begins != nil && c.Begins.MatchString(line) {
			held.begin()
		}
		if waiting.MatchString(line) {
			w.wait(line, stop)
			return
		}
		w.goOn()
	}
	result, err := env.Host.Run(running, how)
	line, waits := w.waits()
	switch {
	case err != nil && errors.Is(context.Cause(running), ErrLocked):
		return nil, result, context.Cause(running)
	case err != nil && ctx.Err() != nil && waits:
		return nil, result, brokenOff(ctx, line)
	case err == nil && ctx.Err() != nil && result.ExitCode == 0:
		return lines, result, fmt.Errorf("%s: %w; it was already changing packages and finished: the change is done", argv[0], context.Cause(ctx))
	}

	return lines, result, err
}

// change keeps a command that changes packages from being broken off.
type change struct {
	stop context.CancelCauseFunc
	tell func(cause error)

	mu    sync.Mutex
	begun bool
}

func (c *change) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

// breakOff ends the command unless it has begun, which is told.
func (c *change) breakOff(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		c.tell(cause)
		return
	}
	c.stop(cause)
}

// waiter is the wait for another process over all tries of a command.
type waiter struct {
	until   time.Time
	timeout time.Duration
	tell    func(line string)

	mu    sync.Mutex
	told  bool
	timer *time.Timer
	line  string
}

// say tells of the wait, once.
func (w *waiter) say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told {
		w.tell(line)
	}
	w.told = true
}

// wait sees that a wait in the command itself ends.
func (w *waiter) wait(line string, giveUp context.CancelCauseFunc) {
	w.say(line)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = line
	if w.timer == nil {
		w.timer = time.AfterFunc(time.Until(w.until), func() { giveUp(w.inVain(line)) })
	}
}

// waits reports whether it waits in the command itself, and what was said of that.
func (w *waiter) waits() (line string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.line, w.timer != nil
}

// goOn ends such a wait.
func (w *waiter) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *waiter) inVain(line string) error {
	err := fmt.Errorf("%w, still after %s: wait until it has ended, or set retry and delay", ErrLocked, w.timeout)

	return resource.Said{Err: err, Output: line}
}
