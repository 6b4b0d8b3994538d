package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
	"github.com/musterfleet/muster/testing/ways"
	"github.com/musterfleet/muster/testing/webtest"
)

// here is this machine, with a state directory and a server of the test's own.
type here struct{ dir, url string }

// Muster runs muster.
func (h here) Muster(t *testing.T, stdin string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "muster", args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+h.dir+"/state", "MUSTER_CONFIG_DIR="+h.dir+"/config", "HOME="+h.dir, "NATS_URL="+h.url)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Log(stderr.String())

	return cmd.ProcessState.ExitCode(), stdout.String()
}

// onRigs are the types that any user cannot bring into a state; testing/rigs
// compares their ways.
var onRigs = []string{"package", "service"}

// TestEveryWayComesToTheSame brings a resource of each type into a state by every
// command there is.
func TestEveryWayComesToTheSame(t *testing.T) {
	server, dir := webtest.Start(t), t.TempDir()
	server.Put("/app.tar.gz", webtest.Text(appArchive(t)))
	h := here{dir: dir, url: natstest.Start(t).URL()}
	if code, text := h.Muster(t, "", "fleet", "init", "--yes"); code != 0 {
		t.Fatal(text)
	}
	agent := start(t, filepath.Join(dir, "node"), "--server", h.url, "--config-dir", dir, "agent", "run", "--node", ways.Node)
	defer func() {
		_ = agent.cmd.Process.Signal(syscall.SIGINT)
		agent.wait()
	}()
	await(t, "the node is known", func() bool {
		_, text := h.Muster(t, "", "fleet", "nodes")
		return strings.Contains(text, ways.Node)
	})
	uid, gid := hosttest.Owner(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	remove := func(names ...string) func(*testing.T) {
		return func(t *testing.T) {
			for _, name := range names {
				if err := os.RemoveAll(path(name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.Mkdir(path("templates"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path("templates/hello"), "Hello [[ Data.who ]]\n")
	write(t, path("child.yaml"), "muster:\n  resources:\n    - file:\n        - "+path("made")+": {content: '${ Data.who }', owner: '"+uid+"', group: '"+gid+"', mode: '0640'}\n")
	tested := slices.Clone(onRigs)
	for name, c := range map[string]ways.Case{
		"file": {
			Properties: map[string]any{"name": path("motd"), "content": "hello\n", "owner": uid, "group": gid, "mode": "0640", "alias": "motd"},
			Outcome:    model.OutcomeChanged, Reset: remove("motd"),
		},
		"file, a directory": {
			Properties: map[string]any{"name": path("d/e"), "ensure": "directory", "owner": uid, "group": gid, "mode": "0750"},
			Outcome:    model.OutcomeChanged, Reset: remove("d"),
		},
		"file, without its directory": {
			Properties: map[string]any{"name": path("no/motd"), "content": "", "owner": uid, "group": gid, "mode": "0640"},
			Outcome:    model.OutcomeFailed, Noop: model.OutcomeFailed, Reset: remove("no"),
		},
		"link": {
			Properties: map[string]any{"name": path("current"), "target": "release-1", "owner": uid, "group": gid, "force": true},
			Outcome:    model.OutcomeChanged, Reset: remove("current"),
		},
		"line": {
			Properties: map[string]any{"name": "port", "path": path("conf"), "match": "^#?port", "line": "port 22", "matches": "first", "create": true, "owner": uid, "group": gid, "mode": "0640"},
			Outcome:    model.OutcomeChanged, Reset: remove("conf"),
		},
		"block": {
			Properties: map[string]any{"name": "limits", "path": path("conf"), "content": "a\nb\n", "at": "start", "order": 10},
			Outcome:    model.OutcomeChanged, Reset: func(t *testing.T) { write(t, path("conf"), "x\n") },
		},
		"setting": {
			Properties: map[string]any{"name": "limit", "path": path("php.ini"), "section": "PHP", "key": "memory limit", "value": "256M", "separator": " = "},
			Outcome:    model.OutcomeChanged, Reset: func(t *testing.T) { write(t, path("php.ini"), "[PHP]\n") },
		},
		"exec": {
			Properties: map[string]any{
				"name": "make", "command": "/bin/sh -c 'echo $WHAT >made; exit 3'", "cwd": dir, "environment": []string{"WHAT=x", "MORE=y"},
				"returns": []string{"0", "3"}, "unless": "test -e made", "timeout": "1m", "logoutput": true,
			},
			Outcome: model.OutcomeChanged, Reset: remove("made"), StatusLacks: []string{"exit_code"},
		},
		"exec, argv": {
			Properties: map[string]any{"name": "any words", "argv": []string{"sh", "-c", `echo "$1" >made`, "", "a 'b"}, "cwd": dir, "creates": path("made")},
			Outcome:    model.OutcomeChanged, Reset: remove("made"), StatusLacks: []string{"exit_code"},
		},
		"exec, shell": {
			Properties: map[string]any{"name": "echo x >" + path("made"), "provider": "shell", "creates": path("made"), "refresh_only": false},
			Outcome:    model.OutcomeChanged, Reset: remove("made"), StatusLacks: []string{"exit_code"},
		},
		"archive": {
			Properties: map[string]any{
				"name": path("app.tar.gz"), "url": server.URL + "/app.tar.gz", "extract_parent": path("app"), "creates": path("app/bin/app"),
				"cleanup": true, "owner": uid, "group": gid, "max_size": "1MiB",
			},
			Outcome: model.OutcomeChanged, Reset: remove("app.tar.gz", "app"),
		},
		"scaffold": {
			Properties: map[string]any{"name": path("site"), "source": path("templates"), "purge": true, "data": map[string]string{"who": "you"}},
			Outcome:    model.OutcomeChanged, Reset: remove("site"),
		},
		"apply": {
			Properties: map[string]any{"name": path("child.yaml"), "data": map[string]string{"who": "you"}, "allow_apply": false},
			Outcome:    model.OutcomeChanged, Reset: remove("made"), NoStatus: true, // status counts what would change now
		},
		"archive, absent": {
			Properties: map[string]any{"name": path("app.tar.gz"), "ensure": "absent"},
			Outcome:    model.OutcomeChanged, Reset: func(t *testing.T) { write(t, path("app.tar.gz"), "x") },
		},
	} {
		of, _, _ := strings.Cut(name, ",")
		tested = append(tested, of)
		t.Run(name, func(t *testing.T) {
			typ, _ := resources.All().Get(of)
			c.Type = typ
			ways.Compare(t, h, c)
		})
	}
	for _, name := range resources.All().Names() {
		if !slices.Contains(tested, name) {
			t.Errorf("nobody compares the ways of a %s", name)
		}
	}
}
