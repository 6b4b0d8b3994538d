package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
	"github.com/musterfleet/muster/testing/racing"
	"github.com/musterfleet/muster/testing/webtest"
)

// TestScaffoldFromURLs renders templates that a web server and an object store
// have, with the data, functions and secrets of a manifest.
func TestScaffoldFromURLs(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	content := hosttest.TarGz(t, 0o640, "app.conf", "name [[ lookup(\"data.name\") ]]\n", "d/secret", "pw [[ Data.pw | upper ]]\n")
	server := webtest.Start(t, webtest.WithAuth("joe", "hunter2"))
	server.Put("/t.tar.gz", webtest.Text(string(content)))
	server.Put("/bad.tar.gz", webtest.Text("no archive"))
	server.Put("/out.tar.gz", webtest.Text(string(hosttest.TarGz(t, 0o640, "../out", "x"))))
	nats := natstest.Start(t)
	run := func(args ...string) (int, string) {
		return start(t, state, append([]string{"--server", nats.URL()}, args...)...).wait()
	}
	js, err := jetstream.New(nats.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "templates"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(t.Context(), "t.tar.gz", content); err != nil {
		t.Fatal(err)
	}
	credentials := strings.Replace(server.URL, "://", "://joe:hunter2@", 1)
	for name, source := range map[string]string{"http": credentials + "/t.tar.gz", "obj": "obj://templates/t.tar.gz"} {
		target := filepath.Join(dir, name)
		manifest := write(t, filepath.Join(dir, name+".yaml"), "data: {name: app, pw: \"${ secret('s3cret-word') }\"}\nmuster:\n  resources:\n    - scaffold:\n        - "+target+": {source: \""+source+"\"}\n")
		before := hosttest.Snapshot(t, dir)
		code, out := run("apply", "--noop", "--diff", manifest)
		if changes := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); code != 0 || len(changes) > 0 {
			t.Errorf("%s: noop ended with %d and changed %v", name, code, changes)
		}
		said := out
		for _, want := range []string{"changed", "stable"} {
			code, out = run("apply", "--diff", manifest)
			said += out
			if code != 0 || !strings.Contains(out, "scaffold#"+target+" "+want) {
				t.Errorf("%s: not %s, exit code %d:\n%s", name, want, code, out)
			}
		}
		for _, secret := range []string{"hunter2", "s3cret", "S3CRET"} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: %s is shown:\n%s", name, secret, said)
			}
		}
		for file, want := range map[string]string{"app.conf": "name app\n", "d/secret": "pw S3CRET-WORD\n"} {
			if text, err := os.ReadFile(filepath.Join(target, file)); err != nil || string(text) != want {
				t.Errorf("%s: %s holds %q, %v", name, file, text, err)
			}
		}
	}
	for source, want := range map[string]string{
		credentials + "/none.tar.gz": "404", credentials + "/bad.tar.gz": "not a valid archive", credentials + "/out.tar.gz": "unsafe entry",
		server.URL + "/t.tar.gz": "401", "obj://templates/none": "not found",
	} {
		code, out := run("ensure", "scaffold", filepath.Join(dir, "none"), "--source", source)
		if code != 1 || !strings.Contains(out, want) || strings.Contains(out, "hunter2") {
			t.Errorf("%s: exit code %d, without %q:\n%s", source, code, want, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(state, "tmp/*")); err != nil || len(left) > 0 {
		t.Error("it left", left, err)
	}
}

// TestTemplatesTogether renders the list of resources, a scaffold of it and a file within that.
func TestTemplatesTogether(t *testing.T) {
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "out")
	for name, text := range map[string]string{
		"list.jet":           "- scaffold:\n    - [[ Data.target ]]: {source: templates}\n- file:\n    - [[ Data.target ]]/motd:\n        {owner: [[ Data.uid ]], group: [[ Data.gid ]], mode: 0644, content: \"${ template('motd.tmpl') }\"}\n",
		"templates/app.conf": "name [[ Data.name ]]\n", "motd.tmpl": "{{ .Data.name | upper }}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	user, group := hosttest.Owner(t)
	manifest := write(t, filepath.Join(dir, "manifest.yaml"), "data: {name: app, target: "+target+", uid: "+user+", gid: "+group+"}\nmuster: {resources_jet_file: list.jet}\n")
	muster(t, t.TempDir(), "apply", manifest)
	for file, want := range map[string]string{"app.conf": "name app\n", "motd": "APP\n"} {
		if text, err := os.ReadFile(filepath.Join(target, file)); err != nil || string(text) != want {
			t.Errorf("%s holds %q, %v", file, text, err)
		}
	}
}

// TestFunctionsInScaffolds has the functions of a manifest in both languages.
func TestFunctionsInScaffolds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go/f":  `{{ gt now.Year 2000 }} {{ lookup "data.a" }} {{ .Data.a }} {{ secret "pw" }} {{ readFile "beside" }} {{ .Facts.host.info.os }}`,
		"jet/f": `[[ now().Year() > 2000 ]] [[ lookup("data.a") ]] [[ Data.a ]] [[ secret("pw") ]] [[ readFile("beside") ]] [[ Facts.host.info.os ]]`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(dir, "beside"), "text")
	for _, engine := range []string{"go", "jet"} {
		target := filepath.Join(t.TempDir(), "out")
		manifest := write(t, filepath.Join(dir, engine+".yaml"), "data: {a: 1}\nmuster: {resources: [{scaffold: [{"+target+": {source: "+engine+", engine: "+engine+"}}]}]}\n")
		muster(t, t.TempDir(), "apply", manifest)
		if text, err := os.ReadFile(filepath.Join(target, "f")); err != nil || string(text) != "true 1 1 pw text linux" {
			t.Errorf("%s: %q, %v", engine, text, err)
		}
	}
}

// TestKilledWhileTemplatesAreRendered kills muster: the renderer ends and leaves no files.
func TestKilledWhileTemplatesAreRendered(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		dir, state := t.TempDir(), t.TempDir()
		write(t, filepath.Join(dir, "f"), "[[ range ints(0, 1000000000000) ]][[ try ]][[ 1 ]][[ end ]][[ end ]]")
		manifest := write(t, filepath.Join(t.TempDir(), "m.yaml"), "muster: {resources: [{scaffold: [{"+t.TempDir()+"/out: {source: "+dir+"}}]}]}\n")
		p := start(t, state, "apply", manifest)
		renderer := 0
		await(t, "it renders", func() bool {
			renderer = childOf(t, p.cmd.Process.Pid)
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", renderer))
			return err == nil && strings.Contains(string(text), "render-scaffold")
		})
		p.signal(signal)
		if code, text := p.wait(); code == 0 {
			t.Error(text)
		}
		await(t, "nothing renders", func() bool { return !alive(renderer) })
		if left, err := filepath.Glob(fmt.Sprintf("/dev/shm/muster-*-%d-*", p.cmd.Process.Pid)); err != nil || len(left) > 0 {
			t.Error(signal, "left", left, err)
		}
	}
}

// childOf returns the only child of a process, or 0 if it has none.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if err == nil {
			_, _ = fmt.Sscan(string(text), &child)
		}
	}

	return child
}

// TestNoopOfTemplatesThatReadWhatTheRunMakes has no failure where there is none.
func TestNoopOfTemplatesThatReadWhatTheRunMakes(t *testing.T) {
	dir, source := t.TempDir(), t.TempDir()
	write(t, filepath.Join(source, "f"), "[[ readFile(\"val\") ]]")
	user, group := hosttest.Owner(t)
	manifest := write(t, filepath.Join(dir, "m.yaml"), "muster:\n  resources:\n    - file: [{"+dir+"/val: {owner: "+user+", group: "+group+", mode: \"0644\", content: made}}]\n    - scaffold: [{"+dir+"/out: {source: "+source+", require: [file#"+dir+"/val]}}]\n")
	if out := muster(t, t.TempDir(), "apply", "--noop", manifest); !strings.Contains(out, "unknown until file#"+dir+"/val is applied") {
		t.Error(out)
	}
	muster(t, t.TempDir(), "apply", manifest)
	if text, err := os.ReadFile(filepath.Join(dir, "out/f")); err != nil || string(text) != "made" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestScaffoldUnderLimits runs with process limits below the needs of the renderer. The errors name these
// limits.
func TestScaffoldUnderLimits(t *testing.T) {
	for name, tc := range map[string]struct{ limit, text, want string }{
		"files":           {"-f 200", "x", ""},
		"memory":          {"-v 2200000", "x", ""},
		"too large":       {"-f 200", `[[ write("w", repeat("x", 300000)) ]]`, "file too large"},
		"too much memory": {"-v 2200000", `[[ x := "x" ]][[ range ints(0, 60) ]][[ x = x + x ]][[ end ]]`, "or more than the address space limit of muster leaves (ulimit -v)"},
	} {
		if racing.Enabled && strings.HasPrefix(tc.limit, "-v") {
			continue // its address space has terabytes
		}
		source := t.TempDir()
		write(t, filepath.Join(source, "f"), tc.text)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit `+tc.limit+` && exec muster "$@"`, "sh", "ensure", "scaffold", filepath.Join(t.TempDir(), "out"), "--source", source)
		cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if (err != nil) != (tc.want != "") || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, without %q:\n%s", name, err, tc.want, out)
		}
	}
}
