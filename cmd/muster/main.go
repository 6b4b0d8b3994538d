// Command muster keeps machines in their desired state: on one of them by
// hand, or on a fleet through NATS.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/resource"
)

// Exit codes (spec/formats.md, "Command line").
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 64
)

func main() { os.Exit(run(resources.All(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is muster with everything it touches and the types it knows given to it,
// and gives the exit code.
func run(types resource.Types, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	out := &output{Writer: stdout}
	a := &app{types: types, stdout: out, stderr: stderr, interrupted: make(chan struct{})}
	a.stdin = newInput(stdin, a.interrupted)
	stopSignals := a.watchSignals(cancel)
	defer stopSignals()
	defer a.close()
	code, err := parse(a.commands(ctx), args)
	switch {
	case err == nil && !a.ran:
	case err != nil && !a.ran:
		fmt.Fprintf(stderr, "muster: %v (see muster --help)\n", err)
		return exitUsage
	default:
		code = a.report(a.err)
	}
	if err := out.failure(); err != nil && !errors.Is(a.err, err) {
		fmt.Fprintf(stderr, "muster: not all of the output could be written: %v\n", err)
		code = cmp.Or(code, exitFailed)
	}

	return code
}

// terminated is how fisk ends after it has printed help or the version.
type terminated struct{ code int }

// parse parses the command line and runs the command's action. The code is the
// one that fisk wants to end with by itself.
func parse(cli *fisk.Application, args []string) (code int, err error) {
	// fisk expects that this does not return.
	cli.Terminate(func(code int) { panic(terminated{code}) })
	defer func() {
		switch v := recover().(type) {
		case nil:
		case terminated:
			code, err = v.code, nil
		default:
			panic(v)
		}
	}()
	_, err = cli.Parse(args)

	return exitOK, err
}

// exitError is an error with an exit code of its own. Without Err nothing is
// printed: what went wrong was told already.
type exitError struct {
	code int
	err  error
	// note says what was not done because of problems.
	note string
}

// Error gives the error within.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}

	return e.err.Error()
}

// Unwrap gives the error within.
func (e *exitError) Unwrap() error { return e.err }

// usagef is an error in how muster was called.
func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// report prints an error, every problem on a line of its own, and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	code, note := exitFailed, "nothing was touched"
	var exit *exitError
	if errors.As(err, &exit) {
		code, err, note = exit.code, exit.err, cmp.Or(exit.note, note)
	}
	if err == nil {
		return code
	}
	problems, lead := model.AsProblems(err), "muster: "
	var all model.Problems
	if !errors.As(err, &all) {
		fmt.Fprintf(a.stderr, "%s%v\n", lead, err)
		return code
	}
	for _, p := range problems.Sorted() {
		fmt.Fprintf(a.stderr, "%s%v\n", lead, p)
	}
	count := "1 problem"
	if len(problems) != 1 {
		count = fmt.Sprintf("%d problems", len(problems))
	}
	// Input is checked as a whole before anything is done with it.
	fmt.Fprintf(a.stderr, "%s%s, %s\n", lead, count, note)

	return code
}

// errInterrupted is why a command ended that was told to.
var errInterrupted = errors.New("interrupted")

// watchSignals closes interrupted at the first SIGINT or SIGTERM, and cancels
// unless a change may be in hand, which is finished; the second cancels in any case.
func (a *app) watchSignals(cancel context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	// Whoever stops reading the output does not stop a run: a write is an error
	// then. Caught and not ignored, because commands would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for count := 0; ; count++ {
			select {
			case s := <-signals:
				if count == 0 {
					a.interrupt()
					if !a.changing.Load() {
						cancel(errInterrupted)
					}
					continue
				}
				cancel(fmt.Errorf("%s, twice", s))
			case <-done:
				return
			}
		}
	}()

	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// interrupt ends the command in good order.
func (a *app) interrupt() { a.interruptOnce.Do(func() { close(a.interrupted) }) }

// action makes a command of f.
func (a *app) action(f func() error) fisk.Action {
	return func(*fisk.ParseContext) error {
		a.ran = true
		a.err = f()
		return nil
	}
}
