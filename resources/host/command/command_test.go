package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/hosttest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// shell is a command of the system's shell.
func shell(script string, args ...string) command.Command {
	return command.Command{Argv: append([]string{"/bin/sh", "-c", script, "sh"}, args...)}
}

func run(t *testing.T, c command.Command) command.Result {
	t.Helper()
	result, err := hosttest.New(t).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	return result
}

func TestRunGivesOutputAndExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 1": 1, "exit 255": 255, "exit 137": 137, "kill -9 $$": 137, "kill -15 $$": 143} {
		result := run(t, shell(script))
		if result.ExitCode != want || result.Killed != strings.HasPrefix(script, "kill") {
			t.Errorf("%s: %+v, want %d", script, result, want)
		}
	}
	result := run(t, shell(`echo "out $1"; echo err >&2`, "a  b"))
	if result.Stdout.String() != "out a  b\n" || result.Stderr.String() != "err\n" {
		t.Errorf("the result is %+v", result)
	}
}

// TestUmask runs commands with their own umask at the same time, which muster keeps.
func TestUmask(t *testing.T) {
	before := unix.Umask(0o022)
	t.Cleanup(func() { unix.Umask(before) })
	runner := hosttest.New(t)
	var all errgroup.Group
	for mask := range 0o100 {
		all.Go(func() error {
			c := shell("umask")
			c.Umask = &mask
			if err := command.Check(c); err != nil {
				return err
			}
			result, err := runner.Run(t.Context(), c)
			if got, want := result.Stdout.String(), fmt.Sprintf("%04o\n", mask); err == nil && got != want {
				err = fmt.Errorf("the umask is %s, not %s", got, want)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if got := run(t, shell("umask")).Stdout.String(); got != "0022\n" {
		t.Errorf("the umask of muster is %s", got)
	}
}

// TestInputThatIsNotRead has more input than a pipe holds, for a command that ends without reading it.
func TestInputThatIsNotRead(t *testing.T) {
	c := shell("exit 3")
	c.Stdin = strings.NewReader(strings.Repeat("x", 16<<20))
	if result := run(t, c); result.ExitCode != 3 {
		t.Errorf("%+v", result)
	}
}

func TestRunReadsItsInput(t *testing.T) {
	c := shell("cat; cat")
	c.Stdin = strings.NewReader("input")
	if got := run(t, c).Stdout.String(); got != "input" {
		t.Errorf("it read %q", got)
	}
	if got := run(t, shell("cat")).Stdout.String(); got != "" {
		t.Errorf("without input it read %q", got)
	}
	ignored := shell("exit 3")
	ignored.Stdin = bytes.NewReader(make([]byte, 16<<20))
	if got := run(t, ignored).ExitCode; got != 3 {
		t.Errorf("a command that does not read its input: exit code %d", got)
	}
	broken := errors.New("broken source")
	c.Stdin = iotest.ErrReader(broken)
	if _, err := hosttest.New(t).Run(t.Context(), c); !errors.Is(err, broken) {
		t.Errorf("input that cannot be read: %v", err)
	}
}

func TestRunHasNoTerminal(t *testing.T) {
	if result := run(t, shell("exec 3<>/dev/tty")); result.ExitCode == 0 {
		t.Error("it has a terminal")
	}
	if got := strings.TrimSpace(run(t, shell("ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat")).Stdout.String()); got == strconv.Itoa(syscall.Getpgrp()) {
		t.Error("it is in the process group of the test")
	}
}

func TestRunEnvironment(t *testing.T) {
	t.Setenv("MUSTER_STATE_DIR", "/secret")
	t.Setenv("NATS_CREDS", "/secret")
	t.Setenv("OF_THE_PROCESS", "kept")
	dir := t.TempDir()
	c := shell("env; echo pwd=$(pwd)")
	c.Dir = dir
	c.Env = []string{"OWN=first", "OWN=second", "MUSTER_RUN_ID=run1", "PATH=/nowhere"}
	c.Path = "/usr/bin:/bin"
	lines := strings.Split(run(t, c).Stdout.String(), "\n")
	for _, want := range []string{"OF_THE_PROCESS=kept", "OWN=second", "MUSTER_RUN_ID=run1", "PATH=/usr/bin:/bin", "PWD=" + dir, "pwd=" + dir} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is missing: %q", want, lines)
		}
	}
	for _, line := range lines {
		if strings.Contains(line, "/secret") || line == "OWN=first" || line == "PATH=/nowhere" {
			t.Errorf("it got %q", line)
		}
	}
	for _, own := range [][]string{nil, {"OWN=1"}} {
		c := command.Command{Argv: []string{"/usr/bin/env"}, Env: own, OnlyEnv: true}
		if got := strings.Fields(run(t, c).Stdout.String()); !slices.Equal(got, own) {
			t.Errorf("with an environment of its own alone, %q, it got %q", own, got)
		}
	}
}

// TestRunSetsHome checks the variables that systemd does not set for services of root.
func TestRunSetsHome(t *testing.T) {
	account, err := exec.Command("getent", "passwd", strconv.Itoa(os.Geteuid())).Output()
	fields := strings.Split(strings.TrimSpace(string(account)), ":")
	if err != nil || len(fields) < 6 {
		t.Fatalf("%v: %q", err, account)
	}
	c := shell("echo $HOME $USER $LOGNAME")
	for _, name := range []string{"HOME", "USER", "LOGNAME"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := run(t, c).Stdout.String(), fields[5]+" "+fields[0]+" "+fields[0]+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv("HOME", "/of-the-process")
	c.Env = []string{"USER=own"}
	if got, want := run(t, c).Stdout.String(), "/of-the-process own "+fields[0]+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// script writes an executable script that says its own path.
func script(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho \"$0\"\n"), mode), os.Chmod(path, mode))
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunFindsItsProgram(t *testing.T) {
	dir := t.TempDir()
	script(t, dir+"/one/tool", 0o755)
	script(t, dir+"/two/tool", 0o755)
	script(t, dir+"/two/only", 0o755)
	script(t, dir+"/locked/tool", 0o644)
	script(t, dir+"/locked/alone", 0o644)
	if err := os.MkdirAll(dir+"/locked/directory", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", dir+"/loop"); err != nil {
		t.Fatal(err)
	}
	script(t, dir+"/closed/tool", 0o755)
	if err := os.Chmod(dir+"/closed", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir+"/closed", 0o755) })
	t.Setenv("PATH", dir+"/two")
	h := hosttest.New(t)
	cases := map[string]struct {
		argv, path, dir string
		env             []string
		want            string
		is              error
		says            []string
	}{
		"the first of its path":        {argv: "tool", path: dir + "/one:" + dir + "/two", want: dir + "/one/tool"},
		"a later of its path":          {argv: "only", path: dir + "/one:" + dir + "/two", want: dir + "/two/only"},
		"muster's own path":            {argv: "tool", want: dir + "/two/tool"},
		"the path of its environment":  {argv: "tool", env: []string{"PATH=" + dir + "/one"}, want: dir + "/one/tool"},
		"what cannot be run is passed": {argv: "tool", path: dir + "/locked:" + dir + "/one", want: dir + "/one/tool"},
		"relative to its directory":    {argv: "one/tool", dir: dir, want: "one/tool"},
		"absolute":                     {argv: dir + "/one/tool", dir: "/", want: dir + "/one/tool"},
		"not in its path":              {argv: "none", path: dir + "/one", is: command.ErrNotFound, says: []string{"none", dir + "/one"}},
		"a name with a blank":          {argv: "ls -l", path: dir + "/one", is: command.ErrBlankName, says: []string{"command not found: \"ls -l\" is one name"}},
		"a path with a blank":          {argv: "/bin/ls -l", is: command.ErrBlankName},
		"not in a long path":           {argv: "none", path: strings.Repeat(dir+"/one:", 9) + dir, is: command.ErrNotFound, says: []string{"none is not in " + strings.Repeat(dir+"/one:", 3) + dir + "/one and 6 more directories of PATH"}},
		"only in a relative directory": {argv: "tool", path: "one::.", dir: dir + "/one", is: command.ErrNotFound},
		"only one that cannot be run":  {argv: "alone", path: dir + "/locked", is: fs.ErrPermission, says: []string{dir + "/locked/alone"}},
		"a directory without access":   {argv: "none", path: dir + "/closed:" + dir + "/loop", is: command.ErrNotFound, says: []string{"none is not in " + dir + "/closed"}},
		"a directory":                  {argv: "directory", path: dir + "/locked", is: fs.ErrPermission},
		"a path to nothing":            {argv: "one/none", dir: dir, is: command.ErrNotFound, says: []string{dir + "/one/none"}},
		"a path that cannot be run":    {argv: dir + "/locked/tool", is: fs.ErrPermission, says: []string{dir + "/locked/tool"}},
		"no directory to run in":       {argv: "/bin/sh", dir: dir + "/none", is: command.ErrNoDir, says: []string{dir + "/none"}},
		"a file to run in":             {argv: "/bin/sh", dir: dir + "/one/tool", is: command.ErrNoDir},
		"no name":                      {argv: "", is: command.ErrNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := command.Command{Argv: []string{c.argv}, Path: c.path, Dir: c.dir, Env: c.env}
			result, err := h.Run(t.Context(), asked)
			if ahead := command.Check(asked); fmt.Sprint(ahead) != fmt.Sprint(err) {
				t.Errorf("said ahead: %v, said by the run: %v", ahead, err)
			}
			if got := strings.TrimSpace(result.Stdout.String()); got != c.want || !errors.Is(err, c.is) {
				t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.is)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
		})
	}
	if _, err := h.Run(t.Context(), command.Command{}); !errors.Is(err, command.ErrNotFound) {
		t.Errorf("no command: %v", err)
	}
}

func TestRunNamesTheMissingInterpreter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := hosttest.New(t).Run(t.Context(), command.Command{Argv: []string{path}})
	if !errors.Is(err, command.ErrNotFound) || !strings.Contains(err.Error(), "interpreter that "+path) {
		t.Errorf("the error is %v", err)
	}
}

// gone waits until a process is gone or a zombie.
func gone(t *testing.T, pid string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for t.Context().Err() == nil {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		_, after, _ := strings.Cut(string(stat), ") ")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.HasPrefix(after, "Z") {
			return
		}
		<-tick.C
	}
	t.Fatalf("process %s is still there", pid)
}

func TestRunKillsTheWholeGroupWhenItsContextEnds(t *testing.T) {
	h := hosttest.New(t)
	timedOut := errors.New("timed out after 30s")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := shell(`trap "" TERM INT; sh -c 'trap "" TERM; echo $$; exec sleep 1000' & wait; sleep 1000`)
	child := ""
	c.OnLine = func(line string, _ bool) {
		child = line
		cancel(timedOut)
	}
	result, err := h.Run(ctx, c)
	if !errors.Is(err, timedOut) || err.Error() != "/bin/sh: timed out after 30s" {
		t.Errorf("the error is %v", err)
	}
	if result.ExitCode != 137 || strings.TrimSpace(result.Stdout.String()) != child {
		t.Errorf("the result is %+v", result)
	}
	gone(t, child)

	if _, err := h.Run(ctx, shell("echo started > "+t.TempDir()+"/file")); !errors.Is(err, timedOut) {
		t.Errorf("a context that had ended before: %v", err)
	}
}

// TestRunTiesACommand kills the process that runs a command.
func TestRunTiesACommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	a := actor.Play(t, "runner", "sh", "-c", "echo $$ > "+path+"; echo begun; exec sleep 1000")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	command, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(unix.PidfdSendSignal(command, unix.SIGKILL, nil, 0), unix.Close(command)) })
	a.Kill()
	ended, err := 0, error(unix.EINTR)
	for err == unix.EINTR {
		ended, err = unix.Poll([]unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}, 30_000)
	}
	if ended != 1 {
		t.Errorf("the command goes on: %v", err)
	}
}

func TestRunDoesNotWaitForADaemon(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	result := run(t, shell(`sleep 1000 & echo $! > "$1"; echo started`, pidFile))
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(number, 0); err != nil {
		t.Errorf("the daemon is not alive: %v", err)
	}
	if err := syscall.Kill(number, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if result.ExitCode != 0 || result.Stdout.String() != "started\n" {
		t.Errorf("the result is %+v", result)
	}
}

// TestRunEndsItsGroup leaves a process behind in the command's group, which holds
// on to its output.
func TestRunEndsItsGroup(t *testing.T) {
	c := shell(`sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' & read x; exit 3`)
	r, w := io.Pipe()
	c.EndGroup, c.Stdin = true, r
	child := ""
	c.OnLine = func(line string, _ bool) {
		child = line
		go func() { _, _ = io.WriteString(w, "go\n"); _ = w.Close() }()
	}
	result := run(t, c)
	if result.ExitCode != 3 || result.Killed || strings.TrimSpace(result.Stdout.String()) != child {
		t.Errorf("the result is %+v", result)
	}
	gone(t, child)
}

func TestRunBoundsWhatItKeeps(t *testing.T) {
	total := 0
	c := shell(`yes "a line of a flood" | head -c 20000000; echo; echo last >&2; echo last`)
	c.OnLine = func(line string, _ bool) { total += len(line) + 1 }
	result := run(t, c)
	o := result.Stdout
	if len(o.Head) != 64<<10 || len(o.Tail) != 64<<10 || o.Dropped != 20000006-128<<10 {
		t.Errorf("head %d, tail %d, dropped %d", len(o.Head), len(o.Tail), o.Dropped)
	}
	if o.LastLines(1) != "last" || result.Stderr.LastLines(5) != "last" {
		t.Errorf("the last lines are %q and %q", o.LastLines(1), result.Stderr.LastLines(5))
	}
	if total != 20000006+5 {
		t.Errorf("%d bytes came line by line", total)
	}
}

func TestRunGivesLinesAsTheyCome(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c := shell("echo first; echo error >&2; read answer; echo $answer; printf unended")
	c.Stdin = read
	var got []string
	c.OnLine = func(line string, stderr bool) {
		got = append(got, fmt.Sprint(line, " ", stderr))
		if len(got) == 2 {
			// Only a line that came before the end of the command gets an answer.
			_, err := io.WriteString(write, "answered\n")
			if err := errors.Join(err, write.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	run(t, c)
	slices.Sort(got[:2])
	if want := []string{"error true", "first false", "answered false", "unended false"}; !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

// TestRunOfWhatWasJustWritten runs new files while other commands start. Their children briefly hold the
// files open for writing.
func TestRunOfWhatWasJustWritten(t *testing.T) {
	h, dir := hosttest.New(t), t.TempDir()
	failed := make(chan error)
	for worker := range 4 {
		go func() {
			var err error
			for i := range 25 {
				path := filepath.Join(dir, fmt.Sprintf("tool-%d-%d", worker, i))
				err = errors.Join(err, h.Write(t.Context(), path, strings.NewReader("#!/bin/sh\nexit 0\n"), hosttest.Attrs(t, 0o755)))
				_, runErr := h.Run(t.Context(), command.Command{Argv: []string{path}})
				err = errors.Join(err, runErr)
			}
			failed <- err
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func TestRunThatNeverBeganSaysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	timedOut := errors.New("timed out after 1ms")
	cancel(timedOut)
	if _, err := hosttest.New(t).Run(ctx, shell("true")); !errors.Is(err, timedOut) {
		t.Errorf("the error is %v", err)
	}
}

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "tool")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "relative:"+dir)
	if got, err := command.FindProgram("tool"); got != program || err != nil {
		t.Errorf("it is %q: %v", got, err)
	}
	if _, err := command.FindProgram("other"); !errors.Is(err, command.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
}
