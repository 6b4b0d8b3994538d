package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

const (
	// logLines is how many lines of its log the error of a service has.
	logLines = 10
	// logTime is how long they are waited for.
	logTime = 5 * time.Second
)

// command runs systemctl. An exit code that means failure is an error with the
// end of what it said.
func command(ctx context.Context, env resource.Env, args ...string) error {
	result, err := run(ctx, env, nil, append([]string{systemctl}, args...)...)
	if err != nil || result.ExitCode == 0 {
		return err
	}
	err = fmt.Errorf("%s %s: exit code %d", systemctl, strings.Join(args, " "), result.ExitCode)
	if said := result.Stderr.LastLines(logLines); said != "" {
		err = resource.Said{Err: err, Output: strings.ToValidUTF8(said, "\uFFFD")}
	}

	return err
}

// withLog adds to an error the last lines that a service has logged since a
// time. It also does so when ctx has ended.
func withLog(ctx context.Context, env resource.Env, name string, since time.Time, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTime)
	defer cancel()
	// What was logged just now may not be in the journal yet.
	if _, syncErr := run(ctx, env, nil, "journalctl", "--sync"); syncErr != nil {
		env.Log.DebugContext(ctx, "the journal cannot be read", "error", syncErr.Error())
		return err
	}
	result, logErr := run(ctx, env, nil, "journalctl", "--quiet", "--no-pager", "--output=cat",
		fmt.Sprintf("--lines=%d", logLines), fmt.Sprintf("--since=@%d", since.Unix()), "--unit="+service.UnitName(name))
	logged := strings.ToValidUTF8(result.Stdout.LastLines(logLines), "\uFFFD")
	if logErr != nil || logged == "" {
		return err
	}
	var said resource.Said
	if errors.As(err, &said) {
		return resource.Said{Err: said.Err, Output: said.Output + "\n" + logged}
	}

	return resource.Said{Err: err, Output: logged}
}
