package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host/web"
)

// Exit codes (spec/formats.md, "Command line").
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 64
	ExitInterrupted = 130
)

// ErrInterrupted is the cause of a command that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// errNoop means that a guard of a noop run started a command that would change the fleet.
var errNoop = errors.New(engine.EnvNoop + " is set, so this command changes nothing")

// ExitError is an error with a specific exit code. If Err is nil, nothing is printed, because the command has
// already printed the cause.
type ExitError struct {
	Code int
	Err  error
	// Note describes what the command did not do because of the error.
	Note string
}

// Error returns the text of Err.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}

	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error about the usage of muster.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// FileError rewrites an error about opening a file: purpose of the file, path and remedy. It returns other
// errors unchanged.
func FileError(what, path string, err error) error {
	var failed *fs.PathError
	remedy := "check the path"
	switch {
	case err == nil || !errors.As(err, &failed) || failed.Path != path:
		return err
	case errors.Is(err, fs.ErrPermission):
		remedy = "run muster as a user with read permission"
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}

	return fmt.Errorf("%s %s: %w (%s)", what, path, failed.Err, remedy)
}

// Report prints an error with one line per problem, and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	code, note := ExitFailed, "no changes made"
	var exit *ExitError
	if errors.As(err, &exit) {
		code, err, note = exit.Code, exit.Err, cmp.Or(exit.Note, note)
	}
	if err == nil {
		return code
	}
	var problems model.Problems
	if !errors.As(err, &problems) {
		fmt.Fprintf(w, "muster: %s\n", print.Visible(Plain(err)))
		return code
	}
	for _, p := range problems.Sorted() {
		fmt.Fprintf(w, "muster: %s\n", print.Visible(p.Error()))
	}
	fmt.Fprintf(w, "muster: %s, %s\n", print.Count(problems.Count(), "problem"), note)

	return code
}

// Plain returns the text of an error. It replaces common messages of libraries by words of users.
func Plain(err error) string {
	text := web.DescribeNetworkError(err)
	if errors.Is(err, connect.ErrConnect) && errors.Is(err, io.EOF) {
		text = strings.Replace(text, io.EOF.Error(), web.DescribeNetworkError(io.EOF), 1)
	}
	for _, known := range []struct {
		err   error
		words string
	}{
		{nats.ErrNoServers, "no server answers"},
		{nats.ErrNoResponders, "nothing answers there"},
		{nats.ErrTimeout, "no answer in time"},
		{context.DeadlineExceeded, "no answer in time"},
		{nats.ErrAuthorization, "the server rejects the credentials"},
		{nats.ErrNoInfoReceived, "what answers is no NATS server"},
		{nats.ErrTLS, "TLS"},
		{nats.ErrSecureConnWanted, "the server has no TLS"},
		{nats.ErrSecureConnRequired, "the server requires TLS"},
		{io.ErrUnexpectedEOF, "it ends too early"},
	} {
		// The server capitalizes some messages.
		at := strings.Index(strings.ToLower(text), strings.ToLower(known.err.Error()))
		if errors.Is(err, known.err) && at >= 0 {
			text = text[:at] + known.words + text[at+len(known.err.Error()):]
		}
	}

	return text
}

// Noop reports whether a command changes nothing, because of --noop or because a noop run started it.
func Noop(asked bool) bool { return asked || os.Getenv(engine.EnvNoop) != "" }

// UnlessNoop returns f, or errNoop if a noop run started the command.
func UnlessNoop(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if Noop(false) {
			return errNoop
		}
		return f(ctx)
	}
}
