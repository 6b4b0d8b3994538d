//go:build system

package exec_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// accountEnv returns an environment with the user ann in the groups web and log. Her number is hosttest.Stranger.
func accountEnv(t *testing.T) (env resource.Env, home string) {
	t.Helper()
	hosttest.NeedRoot(t)
	home = hosttest.Foreign(t)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "passwd"), []byte("root:x:0:0::/root:/bin/sh\nann:x:54321:54321::"+home+":/bin/sh\n"), 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "group"), []byte("ann:x:54321:\nweb:x:54322:ann,bob\nlog:x:54323:bob,ann\napp:x:54324:\n"), 0o644))
	env = testEnv(t)
	env.Host.Accounts = host.NewAccounts(dir, env.Host.Runner, slog.New(slog.DiscardHandler))
	check(t, state.Make(env.Host.StateDir()))
	env.RunEnv = []string{"MUSTER_RUN=42", "MUSTER_STATE_DIR=" + env.Host.StateDir()}

	return env, home
}

// TestSystemUser runs commands and guards as another user.
func TestSystemUser(t *testing.T) {
	env, home := accountEnv(t)
	hidden := env.Host.StateDir()
	for name, c := range map[string]struct {
		properties typetest.Properties
		want, says string
	}{
		"user":              {properties: typetest.Properties{"user": "ann", "command": "echo $(id -u) $(id -g) $(id -G) $(pwd) $HOME $USER $LOGNAME $SHELL $(umask)"}, want: "54321 54321 54321 54322 54323 / " + home + " ann ann /bin/sh 0022"},
		"number":            {properties: typetest.Properties{"user": "54321", "command": "echo $USER $(id -G)"}, want: "ann 54321 54322 54323"},
		"user and group":    {properties: typetest.Properties{"user": "ann", "group": "app", "command": "id -G"}, want: "54324 54322 54323"},
		"group":             {properties: typetest.Properties{"group": "web", "command": "echo $(id -u) $(id -g)"}, want: "0 54322"},
		"without account":   {properties: typetest.Properties{"user": "60123", "group": "60124", "command": "echo $(id -u) $(id -G) $HOME $USER"}, want: "60123 60124 / 60123"},
		"root":              {properties: typetest.Properties{"user": "root", "command": "echo $(id -u) $HOME $(pwd)"}, want: "0 /root /"},
		"environment":       {properties: typetest.Properties{"user": "ann", "environment": []string{"HOME=/x", "A="}, "command": "echo $HOME-$A"}, want: "/x-"},
		"cwd":               {properties: typetest.Properties{"user": "ann", "cwd": home, "command": "pwd; echo x > file; stat -c %U:%u:%a file"}, want: home + "\nUNKNOWN:54321:644"},
		"umask":             {properties: typetest.Properties{"user": "ann", "cwd": home, "umask": "077", "command": "echo x > private; stat -c %a private"}, want: "600"},
		"stdin":             {properties: typetest.Properties{"user": "ann", "stdin": "in\n", "command": "cat"}, want: "in"},
		"run of muster":     {properties: typetest.Properties{"user": "ann", "command": "echo $MUSTER_RUN-$MUSTER_STATE_DIR"}, want: "42-"},
		"state directory":   {properties: typetest.Properties{"user": "ann", "command": "ls " + hidden + " 2>&1; true"}, want: "ls: cannot open directory '" + hidden + "': Permission denied"},
		"guard":             {properties: typetest.Properties{"user": "ann", "onlyif": "test $(id -u) = 54321", "command": "echo ran"}, want: "ran"},
		"cwd of root":       {properties: typetest.Properties{"user": "ann", "cwd": hidden, "command": "true"}, says: "the user of the command may not enter the working directory"},
		"program of root":   {properties: typetest.Properties{"user": "ann", "provider": "posix", "command": hidden + "/x"}, says: "cannot be executed: permission denied"},
		"program elsewhere": {properties: typetest.Properties{"user": "ann", "provider": "posix", "command": "no-such-program-at-all"}, says: "command not found"},
	} {
		t.Run(name, func(t *testing.T) {
			c.properties["name"] = name
			if c.properties["provider"] == nil {
				c.properties["provider"] = "shell"
			}
			spec := decode(t, c.properties)
			if spec.OnlyIf != "" {
				guarded, err := exec.Type{}.EvalGuards(t.Context(), env, exec.Shell("/bin/sh"), spec, &exec.State{})
				check(t, err)
				if plan, err := (exec.Type{}).Plan(spec, guarded, false); err != nil || plan.Empty() {
					t.Errorf("the guard forbids the command: %v", err)
				}
			}
			outcome, _, err := apply(t.Context(), t, env, spec, false)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("the error is %v, not %q", err, c.says)
				}
				return
			}
			check(t, err)
			if got := outcome.Values["stdout"]; got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

// TestSystemTimeoutOfAnotherUser kills all processes of a command of another user. They hold a fifo open, so it ends
// with the last of them.
func TestSystemTimeoutOfAnotherUser(t *testing.T) {
	env, home := accountEnv(t)
	check(t, unix.Mkfifo(filepath.Join(home, "alive"), 0o600))
	hosttest.Give(t, filepath.Join(home, "alive"))
	alive, err := os.OpenFile(filepath.Join(home, "alive"), os.O_RDONLY|unix.O_NONBLOCK, 0)
	check(t, err)
	defer alive.Close()
	spec := decode(t, typetest.Properties{
		"name": "hang", "user": "ann", "provider": "shell", "cwd": home, "logoutput": true,
		"command": "exec 3>alive; setsid sleep 1000 & sleep 1000 & echo ready; wait",
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	env.Log = slog.New(onMessage{"ready", func() { cancel(errors.New("timed out after 30s")) }})
	if _, _, err = apply(ctx, t, env, spec, false); err == nil || !strings.Contains(err.Error(), "timed out after 30s") {
		t.Errorf("%v", err)
	}
	if _, err := io.ReadAll(alive); err != nil {
		t.Errorf("waiting for the end of the children: %v", err)
	}
}
