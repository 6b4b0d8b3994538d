package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	// logLines is the number of log lines in the error of a service.
	logLines = 10
	// logTime limits the wait for the log lines.
	logTime = 5 * time.Second
)

// control runs systemctl. A failing exit code is an error with the last lines
// of stderr.
func control(ctx context.Context, env resource.Env, args ...string) error {
	result, err := run(ctx, env, nil, append([]string{systemctl}, args...)...)
	if err != nil || result.ExitCode == 0 {
		return err
	}
	err = fmt.Errorf("%s %s: exit code %d", systemctl, strings.Join(args, " "), result.ExitCode)
	if said := result.Stderr.LastLines(logLines); said != "" {
		err = resource.CommandError{Err: err, Output: strings.ToValidUTF8(said, "\uFFFD")}
	}

	return err
}

// isTooOften reports whether systemd refused a start because of the start limit. systemd counts again from
// zero after it reads its units.
func isTooOften(err error) bool {
	var said resource.CommandError

	return errors.As(err, &said) && strings.Contains(said.Output, "attempted too often")
}

// withLogs adds to each error the log of its service since a time, even after ctx has ended.
func withLogs(ctx context.Context, env resource.Env, names []string, since time.Time, errs []error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTime)
	defer cancel()
	// The newest entries may not be in the journal yet.
	if _, err := run(ctx, env, nil, "journalctl", "--sync"); err != nil {
		env.Log.DebugContext(ctx, "cannot read the journal", "error", err.Error())
		return
	}
	for i, name := range names {
		if errs[i] == nil {
			continue
		}
		logged, err := lastLogged(ctx, env, name, since)
		if err != nil || logged == "" {
			continue
		}
		var failure resource.CommandError
		if errors.As(errs[i], &failure) {
			errs[i] = resource.CommandError{Err: failure.Err, Output: failure.Output + "\n" + logged}
		} else {
			errs[i] = resource.CommandError{Err: errs[i], Output: logged}
		}
	}
}

// unreadable returns the error of a unit with a mistake in its file, with the log of systemd about it.
func unreadable(ctx context.Context, env resource.Env, name string, u unit) error {
	err := fmt.Errorf("%s: its unit cannot be read (%s): correct its file", name, u.load)
	if logged, failed := lastLogged(ctx, env, u.id, time.Unix(0, 0)); failed == nil && logged != "" {
		return resource.CommandError{Err: err, Output: logged}
	}

	return err
}

// lastLogged returns the last lines that a service logged since a time. journalctl limits lines only in
// reverse order, and reverses messages instead of lines, so each message is read separately. The
// option --unit misses messages of short-lived systemd processes, such as a process that finds no
// program to run.
func lastLogged(ctx context.Context, env resource.Env, name string, since time.Time) (string, error) {
	var messages []string
	onLine := func(line string, stderr bool) {
		if !stderr {
			messages = append(messages, message(line))
		}
	}
	unit := service.UnitName(name)
	_, err := run(ctx, env, onLine, "journalctl", "--quiet", "--no-pager", "--output=json", "--output-fields=MESSAGE", "--all", "--reverse",
		fmt.Sprintf("--lines=%d", logLines), fmt.Sprintf("--since=@%d.%06d", since.Unix(), since.Nanosecond()/1000),
		"_SYSTEMD_UNIT="+unit, "+", "_UID=0", "UNIT="+unit, "+", "_UID=0", "OBJECT_SYSTEMD_UNIT="+unit, "+", "_UID=0", "COREDUMP_UNIT="+unit)
	slices.Reverse(messages)

	return command.Output{Tail: []byte(strings.Join(messages, "\n"))}.LastLines(logLines), err
}

// message returns the message of a journal entry in JSON: a text, or bytes for
// other content.
func message(line string) string {
	var text struct{ MESSAGE string }
	if json.Unmarshal([]byte(line), &text) == nil {
		return text.MESSAGE
	}
	var binary struct{ MESSAGE []uint16 }
	if json.Unmarshal([]byte(line), &binary) != nil {
		return "(a message that cannot be read)"
	}
	bytes := make([]byte, len(binary.MESSAGE))
	for i, b := range binary.MESSAGE {
		bytes[i] = byte(b)
	}

	return strings.ToValidUTF8(string(bytes), "\uFFFD")
}
