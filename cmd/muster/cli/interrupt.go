package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/musterfleet/muster/cmd/muster/print"
)

// Interrupt is a request of the user to end a command.
type Interrupt struct {
	// requested ends at the request.
	requested context.Context
	request   context.CancelFunc
	finishing atomic.Bool
	// reloads is set while a command handles SIGHUP.
	reloads atomic.Bool
	// byUser means that the user pressed ctrl-C.
	byUser atomic.Bool
}

// NewInterrupt returns an Interrupt without a request.
func NewInterrupt() *Interrupt {
	requested, request := context.WithCancel(context.Background())

	return &Interrupt{requested: requested, request: request}
}

// Requested returns a channel that is closed when the command should end.
func (i *Interrupt) Requested() <-chan struct{} { return i.requested.Done() }

// Request asks the command to end.
func (i *Interrupt) Request() { i.request() }

// Finish sets whether the first signal lets a change finish instead of cancelling it.
func (i *Interrupt) Finish(changing bool) { i.finishing.Store(changing) }

// Gentle returns a context that ends at the first interrupt, or with ctx. From then on only the second interrupt ends
// ctx, so that the command can finish its work.
func (i *Interrupt) Gentle(ctx context.Context) (context.Context, context.CancelFunc) {
	i.Finish(true)
	gentle, end := context.WithCancel(ctx)
	stop := context.AfterFunc(i.requested, end)

	return gentle, func() {
		stop()
		end()
	}
}

// ExitCode returns the exit code of a command: 130 if ctrl-C ended it before success, as in shells.
func (i *Interrupt) ExitCode(code int) int {
	if code != ExitOK && i.byUser.Load() {
		return ExitInterrupted
	}

	return code
}

// Hangups returns a channel that receives each SIGHUP, which does not end the command until
// stop is called.
func (i *Interrupt) Hangups() (hangups <-chan os.Signal, stop func()) {
	i.reloads.Store(true)
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)

	return received, func() {
		signal.Stop(received)
		i.reloads.Store(false)
	}
}

// Watch requests the end of the command at the first SIGINT, SIGTERM or SIGHUP. It also cancels the command
// unless a change may be in progress. The second signal always cancels. A SIGHUP that nohup ignores stays
// ignored.
func (i *Interrupt) Watch(cancel context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 2)
	done := make(chan struct{})
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	signal.Notify(signals, ends...)
	// A closed pipe does not stop a run: writes return an error. The signal is caught and not ignored,
	// because child processes would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var watching sync.WaitGroup
	watching.Go(func() {
		for count := 0; ; {
			select {
			case s := <-signals:
				// A closed terminal may send several signals.
				if s == syscall.SIGHUP && (count > 0 || i.reloads.Load()) {
					continue
				}
				if count++; count > 1 {
					cancel(fmt.Errorf("aborted by the second signal (%s)", s))
					continue
				}
				i.byUser.Store(s == syscall.SIGINT)
				i.Request()
				if !i.finishing.Load() {
					cancel(ErrInterrupted)
				}
			case <-done:
				return
			}
		}
	})

	return func() {
		signal.Stop(signals)
		close(done)
		watching.Wait()
	}
}

// inputPoll is the interval, in milliseconds, of the checks for an interrupt while muster waits for input.
const inputPoll = 100

// input is standard input. A read ends with ErrInterrupted at an interrupt, also while it waits.
type input struct {
	file        *os.File
	interrupted <-chan struct{}
}

// newInput returns the input of a file. Reads of other readers cannot be interrupted.
func newInput(r io.Reader, interrupted <-chan struct{}) io.Reader {
	if file, ok := r.(*os.File); ok {
		return &input{file: file, interrupted: interrupted}
	}

	return r
}

// Read reads, or waits for input.
func (i *input) Read(b []byte) (int, error) {
	for {
		select {
		case <-i.interrupted:
			return 0, ErrInterrupted
		default:
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(i.file.Fd()), Events: unix.POLLIN}}, inputPoll)
		switch {
		case err != nil && err != unix.EINTR:
			return 0, os.NewSyscallError("poll", err)
		case ready > 0:
			return i.file.Read(b)
		}
	}
}

// password reads a line from a terminal without echo. It ends at an interrupt like Read.
func (i *input) password() (string, error) {
	fd := int(i.file.Fd())
	shown, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return "", err
	}
	hidden := *shown
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return "", err
	}
	defer func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, shown) }()
	line, err := bufio.NewReader(i).ReadString('\n')

	return strings.TrimRight(line, "\r\n"), err
}

// Prompt asks the user of a terminal.
type Prompt struct {
	Stdin io.Reader
	// Questions is standard error.
	Questions io.Writer
}

// asksPeople reports whether standard input is a terminal.
func (p Prompt) asksPeople() bool {
	in, ok := p.Stdin.(*input)

	return ok && term.IsTerminal(int(in.file.Fd()))
}

// CanAsk reports whether standard input and output are a terminal, so that muster can prompt the user.
func (p Prompt) CanAsk() bool { return p.asksPeople() && print.IsTerminal(p.Questions) }

// Ask prompts on a terminal and reports whether the answer is yes; otherwise is the default. Without a
// terminal the answer is no.
func (p Prompt) Ask(question string, otherwise bool) bool {
	if !p.CanAsk() {
		return false
	}
	choice := "[y/N]"
	if otherwise {
		choice = "[Y/n]"
	}
	fmt.Fprintf(p.Questions, "%s %s ", print.Text(question), choice)
	answer, err := bufio.NewReader(p.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	case "":
		return otherwise && err == nil
	default:
		return false
	}
}

// Confirm prompts on a terminal. Without a terminal it returns an error that names --yes.
func (p Prompt) Confirm(nothing, why string) error {
	if !p.CanAsk() {
		return fmt.Errorf("%s: %s; confirm with --yes", nothing, why)
	}
	if !p.Ask(why+". Continue?", false) {
		return errors.New(nothing)
	}

	return nil
}
