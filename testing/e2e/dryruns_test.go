package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
)

// dryRun is a dry run of a command. "\x00" in its arguments is a space within a word. prepare runs
// before each run of the command.
type dryRun struct {
	args    string
	stdin   string
	env     string
	prepare func(t *testing.T)
	// isPure marks a command that never changes the machine.
	isPure bool
}

// asChange returns the command line and the input without the marks of a dry run.
func (d dryRun) asChange() (args []string, stdin string) {
	return words(strings.NewReplacer(" --noop", "", " --file-noop", "").Replace(d.args)), strings.ReplaceAll(d.stdin, `"noop": true`, `"noop": false`)
}

func words(line string) []string {
	out := strings.Fields(line)
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "\x00", " ")
	}

	return out
}

// TestDryRunsChangeNothing runs each command twice: the dry run must change nothing, and the same
// command without noop must change something.
func TestDryRunsChangeNothing(t *testing.T) {
	dir, server := t.TempDir(), natstest.Start(t)
	h := here{dir: dir, url: server.URL()}
	if code, text := h.Muster(t, "", "fleet", "init", "--yes"); code != 0 {
		t.Fatal(text)
	}
	agent := start(t, filepath.Join(dir, "node"), "--server", server.URL(), "--config-dir", dir, "agent", "run", "--node", "n1")
	defer func() {
		_ = agent.cmd.Process.Signal(syscall.SIGINT)
		agent.wait()
	}()
	await(t, "the node is known", func() bool {
		_, text := h.Muster(t, "", "fleet", "nodes")
		return strings.Contains(text, "n1")
	})
	w := dryRunFiles(t, dir)
	cases := w.cases()
	cases["a run on the nodes"] = dryRun{args: "fleet run --noop --node n1 --manifest run", prepare: func(t *testing.T) {
		if code, text := h.Muster(t, "", "fleet", "push", "--node", "n1", "run.yaml", "--wait"); code != 0 {
			t.Fatal(text)
		}
		w.reset(t)
	}}
	for name, d := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MUSTER_SESSION_STORE", "")
			w.reset(t)
			if d.prepare != nil {
				d.prepare(t)
			}
			name, value, isEnv := strings.Cut(d.env, "=")
			if isEnv {
				t.Setenv(name, value)
			}
			code, out := h.Muster(t, d.stdin, words(d.args)...)
			if made := w.made(); len(made) > 0 {
				t.Errorf("the dry run made %v: exit code %d\n%s", made, code, out)
			}
			if strings.Contains(d.args, "api pipe") && !strings.Contains(out, `"noop": true`) {
				t.Errorf("the response does not say noop:\n%s", out)
			}
			if d.isPure {
				return
			}
			w.reset(t)
			if d.prepare != nil {
				d.prepare(t)
			}
			if isEnv {
				if err := os.Unsetenv(name); err != nil {
					t.Fatal(err)
				}
			}
			args, stdin := d.asChange()
			if code, out := h.Muster(t, stdin, args...); len(w.made()) == 0 {
				t.Errorf("the same command made nothing without noop, so it proves nothing: exit code %d\n%s", code, out)
			}
		})
	}
}

// dryRunWorld is a directory. Every change creates a file in it.
type dryRunWorld struct{ dir, uid, gid string }

func dryRunFiles(t *testing.T, dir string) dryRunWorld {
	t.Helper()
	uid, gid := hosttest.Owner(t)
	w := dryRunWorld{dir, uid, gid}
	for _, name := range []string{"templates", "hooks"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "templates/hello"), "hello\n")
	hook := write(t, filepath.Join(dir, "hooks/hook"), "#!/bin/sh\ntouch "+w.path("made-by-hook")+"\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "child.yaml"), "muster:\n  resources:\n    - exec:\n        - touch "+w.path("made-by-child")+": {creates: "+w.path("made-by-child")+"}\n")
	write(t, filepath.Join(dir, "run.yaml"), "muster:\n  resources:\n    - exec:\n        - "+w.path("hooks/hook")+": {}\n")
	write(t, filepath.Join(dir, "site.yaml"), fmt.Sprintf(`
muster:
  resources:
    - file:
        - %[1]s/made-file: {content: x, owner: "%[2]s", group: "%[3]s", mode: "0600", validate: "%[1]s/hooks/hook {}"}
    - scaffold:
        - %[1]s/made-site: {source: templates, post: ["*": "%[1]s/hooks/hook"], validate: "%[1]s/hooks/hook {}"}
    - exec:
        - touch %[1]s/made-exec: {subscribe: [file#%[1]s/made-file]}
    - apply:
        - child.yaml: {}
`, dir, uid, gid))

	return w
}

func (w dryRunWorld) path(name string) string { return filepath.Join(w.dir, name) }

// made returns the paths that a change made.
func (w dryRunWorld) made() []string {
	made, _ := filepath.Glob(w.path("made*"))
	return made
}

func (w dryRunWorld) reset(t *testing.T) {
	t.Helper()
	for _, path := range w.made() {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// request returns an ensure request of an exec, or of another type with its properties.
func (w dryRunWorld) request(typ, properties, more string) string {
	return `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "` + typ + `", "properties": {` + properties + `}` + more + `}`
}

func (w dryRunWorld) cases() map[string]dryRun {
	file := "file " + w.path("made-file") + " --content x --owner " + w.uid + " --group " + w.gid + " --mode 0600"
	hooked := " --validate " + w.path("hooks/hook") + "\x00{}"
	command := "exec " + w.path("hooks/hook")
	execRequest := w.request("exec", `"name": "touch `+w.path("made-exec")+`"`, "")
	cases := map[string]dryRun{
		"apply":                            {args: "apply --noop site.yaml"},
		"apply, behind":                    {args: "apply site.yaml --noop"},
		"apply from standard input":        {args: "apply --noop -", stdin: "muster: {resources: [{exec: [{touch " + w.path("made-exec") + ": {}}]}]}"},
		"apply in a run in noop":           {args: "apply site.yaml", env: "MUSTER_NOOP=1"},
		"ensure":                           {args: "ensure --noop " + file},
		"ensure, behind":                   {args: "ensure " + file + hooked + " --noop"},
		"ensure a resource":                {args: "ensure " + file + " --file-noop"},
		"ensure in a run in noop":          {args: "ensure " + command, env: "MUSTER_NOOP=1"},
		"ensure a scaffold":                {args: "ensure --noop scaffold " + w.path("made-site") + " --source templates --post *=" + w.path("hooks/hook")},
		"ensure a manifest":                {args: "ensure apply child.yaml --noop"},
		"a request":                        {args: "ensure --noop api pipe", stdin: execRequest},
		"a request, behind":                {args: "ensure api pipe --noop", stdin: execRequest},
		"a request that says it":           {args: "ensure api pipe", stdin: w.request("exec", `"name": "touch `+w.path("made-exec")+`"`, `, "noop": true`)},
		"a request in a run in noop":       {args: "ensure api pipe", stdin: execRequest, env: "MUSTER_NOOP=1"},
		"a request of a file":              {args: "ensure --noop api pipe", stdin: w.request("file", `"name": "`+w.path("made-file")+`", "content": "x", "owner": "`+w.uid+`", "group": "`+w.gid+`", "mode": "0600"`, "")},
		"a request of a scaffold":          {args: "ensure --noop api pipe", stdin: w.request("scaffold", `"name": "`+w.path("made-site")+`", "source": "templates"`, "")},
		"a request of a manifest":          {args: "ensure --noop api pipe", stdin: w.request("apply", `"name": "child.yaml"`, "")},
		"ensure on the nodes":              {args: "fleet ensure --noop --node n1 " + strings.ReplaceAll(file, "--group", "--file-group")},
		"a hook on the nodes":              {args: "fleet ensure --node n1 --noop exec " + w.path("hooks/hook")},
		"a command on the nodes":           {args: "fleet exec --noop --node n1 -- touch " + w.path("made-exec")},
		"a manifest that a resource names": {args: "apply --noop -", stdin: "muster: {resources: [{apply: [{" + w.path("child.yaml") + ": {}}]}]}"},
	}
	for _, pure := range []string{"fleet preview --node n1 run.yaml", "validate site.yaml", "graph site.yaml", "apply --render site.yaml", "status exec " + w.path("hooks/hook")} {
		cases[pure] = dryRun{args: pure, isPure: true}
	}
	for name, noop := range map[string]string{"session": "ensure --noop " + command, "session, a request": "ensure --noop api pipe"} {
		cases[name] = dryRun{args: noop, stdin: execRequest, prepare: w.session}
	}
	cases["session, a subscriber"] = dryRun{
		args: "ensure --noop exec " + w.path("hooks/hook") + " --refresh-only --subscribe exec#/bin/true", prepare: func(t *testing.T) {
			w.session(t)
			cmd := exec.CommandContext(t.Context(), "muster", "ensure", "exec", "/bin/true")
			cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+w.path("state"), "MUSTER_CONFIG_DIR="+w.path("config"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
	}

	return cases
}

// session starts a session for the commands of a test.
func (w dryRunWorld) session(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "muster", "session", "new")
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+w.path("state"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, store, _ := strings.Cut(strings.TrimSpace(string(out)), "=")
	t.Cleanup(func() { _ = os.RemoveAll(store) })
	t.Setenv("MUSTER_SESSION_STORE", store)
}
