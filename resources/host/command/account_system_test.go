//go:build system

package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/hosttest"
)

func stranger() *command.Account {
	return &command.Account{Name: "ann", Home: "/home/ann", Shell: "/bin/ash", UID: hosttest.Stranger, GID: hosttest.Stranger, Groups: []uint32{54322, 54323}}
}

// TestSystemAccountOfACommand runs commands as another user.
func TestSystemAccountOfACommand(t *testing.T) {
	hosttest.NeedRoot(t)
	for script, want := range map[string]string{
		"id -u; id -ru; id -g; id -rg; id -G": "54321\n54321\n54321\n54321\n54321 54322 54323\n",
		`echo $HOME $USER $LOGNAME $SHELL`:    "/home/ann ann ann /bin/ash\n",
		"grep -c '[1-9a-f]' /proc/self/status >/dev/null; sed -n 's/^Cap\\(Eff\\|Prm\\|Amb\\):\\s*//p' /proc/self/status": strings.Repeat("0000000000000000\n", 3),
		"pwd": "/\n",
	} {
		c := shell(script)
		c.As, c.Dir = stranger(), "/"
		if got := run(t, c).Stdout.String(); got != want {
			t.Errorf("%s prints %q, not %q", script, got, want)
		}
	}
}

// TestSystemWhatAnotherUserGetsFromMuster checks that a command of another user gets no descriptor, variable or terminal of root.
func TestSystemWhatAnotherUserGetsFromMuster(t *testing.T) {
	hosttest.NeedRoot(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hidden")
	t.Setenv("SSH_AUTH_SOCK", "/run/hidden")
	t.Setenv("LC_TIME", "C")
	secret, err := os.Open("/etc/shadow")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	// Descriptors that muster inherited from its own parent lack the flag.
	if _, err := unix.FcntlInt(secret.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	c := shell(`ls /proc/self/fd; echo; env; echo; (: </dev/tty) 2>/dev/null && echo terminal; ps -o sid= -p $$ >/dev/null; exec cat /proc/self/stat`)
	c.As, c.Dir, c.Env = stranger(), "/", []string{"GIVEN=yes"}
	got := run(t, c).Stdout.String()
	parts := strings.SplitN(got, "\n\n", 3)
	if descriptors := strings.Fields(parts[0]); !slices.Equal(descriptors, []string{"0", "1", "2", "3"}) { // ls opens one
		t.Errorf("open descriptors: %q", descriptors)
	}
	var names []string
	for line := range strings.SplitSeq(parts[1], "\n") {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	for _, name := range names {
		if !slices.Contains([]string{"PATH", "LANG", "LANGUAGE", "TZ", "LC_TIME", "LC_ALL", "LC_CTYPE", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "GIVEN", "_", "SHLVL", "OLDPWD"}, name) {
			t.Errorf("the variable %s", name)
		}
	}
	if !slices.Contains(names, "LC_TIME") || !slices.Contains(names, "GIVEN") {
		t.Errorf("there is only %q", names)
	}
	fields := strings.Fields(parts[2])
	if pid, session, terminal := fields[0], fields[5], fields[6]; pid != session || terminal != "0" {
		t.Errorf("process %s in session %s with terminal %s", pid, session, terminal)
	}
}

// TestSystemAccountMayNotReachFilesOfRoot has a working directory and a program that only root may reach.
func TestSystemAccountMayNotReachFilesOfRoot(t *testing.T) {
	hosttest.NeedRoot(t)
	base := filepath.Dir(hosttest.Foreign(t))
	hosttest.MakeTree(t, base, "closed/", "closed/open/", "closed/tool", "open/", "open/tool")
	for path, mode := range map[string]os.FileMode{"closed": 0o700, "closed/open": 0o755, "closed/tool": 0o755, "open": 0o755, "open/tool": 0o700} {
		if err := os.Chmod(filepath.Join(base, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	runner := hosttest.New(t)
	for name, c := range map[string]struct {
		command command.Command
		want    string
	}{
		"a closed directory":         {command.Command{Argv: []string{"true"}, Dir: base + "/closed"}, "the user of the command may not enter the working directory: enter " + base + "/closed: permission denied"},
		"a directory below":          {command.Command{Argv: []string{"true"}, Dir: base + "/closed/open"}, "the user of the command may not enter the working directory: open " + base + "/closed/open: permission denied"},
		"a program below":            {command.Command{Argv: []string{base + "/closed/tool"}, Dir: "/"}, base + "/closed/tool cannot be executed: permission denied"},
		"a program of root":          {command.Command{Argv: []string{base + "/open/tool"}, Dir: "/"}, base + "/open/tool cannot be executed: permission denied"},
		"a program of root, by PATH": {command.Command{Argv: []string{"tool"}, Dir: "/", Path: base + "/open"}, base + "/open/tool cannot be executed: permission denied"},
	} {
		c.command.As = stranger()
		for when, err := range map[string]error{"ahead": command.Check(c.command), "at the start": second(runner.Run(t.Context(), c.command))} {
			if err == nil || err.Error() != c.want {
				t.Errorf("%s, %s: %v", name, when, err)
			}
		}
	}
	// The thread that had the rights of the user is gone.
	if err := command.Check(command.Command{Argv: []string{base + "/closed/tool"}, Dir: base + "/closed"}); err != nil {
		t.Error(err)
	}
}

func second[A, B any](_ A, b B) B { return b }

// TestSystemOnlyRootRunsAsAnother plays muster as an ordinary user.
func TestSystemOnlyRootRunsAsAnother(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	program := filepath.Join(home, "test")
	content, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for as, want := range map[string]string{
		"0 0":         "only root runs commands as another user or group: this needs user 0 and group 0, and muster runs as user 54321",
		"54321 0":     "only root runs commands as another user or group: this needs user 54321 and group 0, and muster runs as user 54321",
		"54321 54321": "<nil>",
	} {
		c := command.Command{Argv: append([]string{program}, strings.Fields(as)...), Dir: home, As: stranger(), Env: []string{actor.Variable + "=other"}}
		result := run(t, c)
		if got := strings.TrimSpace(result.Stdout.String()); got != want {
			t.Errorf("%s: %q, %s", as, got, result.Stderr.String())
		}
	}
}
