package pkg_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"golang.org/x/sys/unix"
)

// logged returns an environment and a buffer for its warnings.
func logged(t *testing.T) (resource.Env, *bytes.Buffer) {
	t.Helper()
	var text bytes.Buffer

	return resource.Env{Host: hosttest.New(t), Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})), RunEnv: []string{"RUN=7"}}, &text
}

// TestChange runs commands that say what package managers say.
func TestChange(t *testing.T) {
	scripts := pkg.Remedy{Says: regexp.MustCompile(`(?m)^failed: (\S+)$`), Err: pkg.ErrScript, Do: "mend it"}
	lua := pkg.Remedy{Says: regexp.MustCompile(`(?m)^lua: (\S+)$`), Err: pkg.ErrScript, Do: "mend it"}
	remedies := []pkg.Remedy{
		pkg.Says(`are you root\?`, pkg.ErrNotRoot, "be root"), scripts, lua, pkg.Says("broken", pkg.ErrBroken, "mend it"),
		{Says: regexp.MustCompile(`(?m)^list of them:(?:\n .*)+`), Err: pkg.ErrUnmet, Do: "add it"},
	}
	for name, c := range map[string]struct {
		script string
		err    error
		says   string
		waits  int
	}{
		"success":                   {script: "echo fine"},
		"not root":                  {script: "echo 'E: Unable to acquire the dpkg frontend lock (/x), are you root?' >&2; exit 100", err: pkg.ErrNotRoot, says: "Unable to acquire the dpkg frontend lock (/x), are you root?: only root may change packages: be root:\nE: Unable to acquire the dpkg frontend lock (/x), are you root?"},
		"about the one asked for":   {script: "printf 'one\\r\\nfailed: a\\r\\n 5%%\\rtwo\\r\\nfailed: sh\\r\\nend\\r\\n'; echo E: no >&2; exit 1", err: pkg.ErrScript, says: "failed: sh: a script of a package failed: a, sh: mend it:\ntwo\nfailed: sh"},
		"about another one":         {script: "echo one >&2; echo failed: a >&2; exit 1", err: pkg.ErrScript, says: "failed: a: a script of a package failed: mend it:\none\nfailed: a"},
		"a known error":             {script: "echo E: it is broken >&2; exit 100", err: pkg.ErrBroken, says: "it is broken: the package database needs repair: mend it:\nE: it is broken"},
		"told on stdout":            {script: "echo before; echo list of them:; echo ' a'; echo E: no >&2; exit 1", err: pkg.ErrUnmet, says: "list of them: a: the dependencies cannot be met: add it:\nbefore\nlist of them:\n a"},
		"a script of a success":     {script: "echo one; echo failed: a; echo end", err: pkg.ErrScript, says: "failed: a: a script of a package failed: mend it:\none\nfailed: a"},
		"scripts of two kinds":      {script: "echo lua: b; echo failed: a; exit 1", err: pkg.ErrScript, says: "failed: a: a script of a package failed: a, b: mend it:\nlua: b\nfailed: a"},
		"the same of a success":     {script: "echo lua: b; echo failed: a", err: pkg.ErrScript, says: "failed: a: a script of a package failed: a, b: mend it:\nlua: b\nfailed: a"},
		"a line of muster":          {script: "echo muster: dpkg begins; echo failed: a; exit 1", err: pkg.ErrScript, says: "failed: a: a script of a package failed: mend it"},
		"declined":                  {script: "echo no thanks; exit 1"},
		"an unknown error":          {script: "echo odd; exit 3", says: "sh -c: exit code 3: odd"},
		"no words":                  {script: "exit 4", says: "sh -c: exit code 4"},
		"waits itself":              {script: "echo Waiting for process with pid 12 to finish.; echo Waiting for process with pid 12 to finish.; echo done", waits: 1},
		"waits itself, without end": {script: "echo Waiting for process with pid 12 to finish.; sleep 60", err: pkg.ErrLocked, says: "another process holds the lock of the package manager, still after 300ms: wait until it has ended, or set retry and delay: Waiting for process with pid 12 to finish.", waits: 1},
		"does not wait":             {script: "[ -e $DIR/again ] || { touch $DIR/again; echo 'E: Could not get lock /x' >&2; exit 100; }", waits: 1},
		"the environment is clean":  {script: `[ "$LC_ALL $MINE $RUN ${MUSTER_X-none}" = "C.UTF-8 yes 7 none" ] && [ "${PATH%:/bin}" != "$PATH" ]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MUSTER_X", "secret")
			e, text := logged(t)
			changer := pkg.Changer{Environment: []string{"MINE=yes", "DIR=" + t.TempDir()}, Remedies: remedies, Timeout: time.Minute, Scripts: []pkg.Remedy{scripts, lua}, Declined: "no thanks"}
			if name == "waits itself, without end" {
				changer.Timeout = 300 * time.Millisecond
			}
			err := changer.Change(t.Context(), e, "sh", "-c", c.script)
			switch {
			case (err != nil) != (c.says != ""):
				t.Errorf("the error is %v", err)
			case err != nil && (err.Error() != c.says || (c.err != nil && !errors.Is(err, c.err))):
				t.Errorf("the error is %v, not %s", err, c.says)
			}
			if got := strings.Count(text.String(), "waiting for another process that changes packages"); got != c.waits {
				t.Errorf("%d messages: %s", got, text)
			}
		})
	}
}

func TestChangeGivesUp(t *testing.T) {
	e, _ := logged(t)
	refused := []string{"sh", "-c", "echo 'E: Could not get lock /x' >&2; exit 100"}
	if err := (pkg.Changer{}).Change(t.Context(), e, refused...); !errors.Is(err, pkg.ErrLocked) {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("timed out after 100ms"))
	defer cancel()
	if err := (pkg.Changer{Timeout: time.Minute}).Change(ctx, e, refused...); err == nil || !strings.Contains(err.Error(), "timed out after 100ms") {
		t.Errorf("the error is %v", err)
	}
	if err := (pkg.Changer{}).Change(t.Context(), e, filepath.Join(t.TempDir(), "none")); !errors.Is(err, command.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}

// TestChangeIsNotBrokenOff ends the time of commands before and after they begin
// to change packages.
func TestChangeIsNotBrokenOff(t *testing.T) {
	for name, c := range map[string]struct {
		script, says string
		done         bool
	}{
		"before":           {script: "echo ready; read line < $DIR/go; touch $DIR/done", says: "sh: timed out after 1s"},
		"afterwards":       {script: "echo begins; echo ready; read line < $DIR/go; touch $DIR/done", says: "sh: timed out after 1s; it was already changing packages and finished: the change is done", done: true},
		"and it fails":     {script: "echo begins; echo ready; read line < $DIR/go; touch $DIR/done; echo odd; exit 3", says: "sh -c: exit code 3: begins\nready\nodd", done: true},
		"waits for others": {script: "echo Waiting for process with pid 12 to finish.; read line < $DIR/go", says: "waiting for another process that changes packages: timed out after 1s: Waiting for process with pid 12 to finish."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mkfifo(filepath.Join(dir, "go"), 0o600); err != nil {
				t.Fatal(err)
			}
			// The pipe is also open for reading, so writing does not block after the command ended.
			further, err := os.OpenFile(filepath.Join(dir, "go"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer further.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			e, _ := logged(t)
			e.Log = slog.New(onLine{Handler: slog.DiscardHandler, line: func(line string) {
				switch {
				case line == "ready", strings.HasPrefix(line, "waiting"):
					cancel(errors.New("timed out after 1s"))
				case strings.HasPrefix(line, "package change in progress"):
					_, err := further.WriteString("go\n")
					if err != nil {
						t.Error(err)
					}
				}
			}})
			changer := pkg.Changer{Environment: []string{"DIR=" + dir}, Begins: regexp.MustCompile("^begins$"), Timeout: time.Minute}
			if err := changer.Change(ctx, e, "sh", "-c", c.script); err == nil || err.Error() != c.says {
				t.Errorf("the error is %v, not %s", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(dir, "done")); (err == nil) != c.done {
				t.Errorf("it was done: %v", err)
			}
			if err := changer.Change(ctx, e, "touch", filepath.Join(dir, "late")); err == nil || err.Error() != "touch: timed out after 1s" {
				t.Errorf("of what comes after that the error is %v", err)
			}
		})
	}
}

// onLine is a log that reports each line.
type onLine struct {
	slog.Handler
	line func(string)
}

func (onLine) Enabled(context.Context, slog.Level) bool { return true }

func (l onLine) Handle(_ context.Context, r slog.Record) error {
	l.line(r.Message)
	return nil
}

// TestAskKeepsEveryLine asks for more than host keeps of an output.
func TestAskKeepsEveryLine(t *testing.T) {
	e, _ := logged(t)
	lines, result, err := pkg.Ask(t.Context(), e, "sh", "-c", "seq 1 100000; echo x >&2; exit 2")
	if err != nil || result.ExitCode != 2 || len(lines) != 100_000 || lines[99_999] != "100000" {
		t.Errorf("%d lines, %d, %v", len(lines), result.ExitCode, err)
	}
}

func TestRefreshed(t *testing.T) {
	e, _ := logged(t)
	dir := t.TempDir()
	stamp := filepath.Join(dir, "stamp")
	if at, err := pkg.Refreshed(e, "apt", stamp); err != nil || !at.IsZero() {
		t.Errorf("%v, %v", at, err)
	}
	hour := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := errors.Join(os.WriteFile(stamp, nil, 0o600), os.Chtimes(stamp, hour, hour), os.MkdirAll(e.Host.StateDir(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if at, err := pkg.Refreshed(e, "apt", stamp); err != nil || !at.Equal(hour) {
		t.Errorf("%v, %v", at, err)
	}
	if err := pkg.NoteRefresh(t.Context(), e, "apt", time.Now()); err != nil {
		t.Fatal(err)
	}
	if at, err := pkg.Refreshed(e, "apt", stamp); err != nil || !at.After(hour) {
		t.Errorf("%v, %v", at, err)
	}
	if at, err := pkg.Refreshed(e, "dnf", stamp); err != nil || !at.Equal(hour) {
		t.Errorf("the note of another provider counts: %v, %v", at, err)
	}
	stateless := resource.Env{Host: host.New(host.Options{})}
	if err := pkg.NoteRefresh(t.Context(), stateless, "apt", time.Now()); err != nil {
		t.Error(err)
	}
}
