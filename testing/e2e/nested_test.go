package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGuardOfANoopRunChangesNothing uses a guard that is a muster, or starts one through a script.
func TestGuardOfANoopRunChangesNothing(t *testing.T) {
	cases := map[string]struct {
		args     []string
		property string
	}{
		"a noop run":      {[]string{"apply", "--noop"}, ""},
		"a noop resource": {[]string{"apply"}, ", noop: true"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			made := filepath.Join(dir, "made")
			write(t, filepath.Join(dir, "inner.yaml"), fmt.Sprintf("muster: {resources: [{file: [{%s: {content: x, owner: \"%d\", group: \"%d\", mode: 0600}}]}]}", made, os.Geteuid(), os.Getegid()))
			manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - by manifest: {command: "true", onlyif: "muster apply inner.yaml > apply.log 2>&1", provider: shell, cwd: %q%s}
        - by request: {command: "true", onlyif: "sh -c 'muster ensure exec %s --command \"touch made\" --cwd %[1]s --creates %[3]s > ensure.log 2>&1'", provider: shell, cwd: %[1]q%[2]s}
`, dir, c.property, made))
			muster(t, filepath.Join(dir, "state"), append(c.args, manifest)...)
			if exists(made) {
				t.Error("a guard of a run that changes nothing changed something")
			}
			for _, log := range []string{"apply.log", "ensure.log"} {
				if text, err := os.ReadFile(filepath.Join(dir, log)); err != nil || !strings.Contains(string(text), "would change") {
					t.Errorf("%v: %s", err, text)
				}
			}
		})
	}
}

// TestMustersOfOneCommandTakeTurns: both belong to the run that started them,
// so neither waits for that; but each waits for the other, and not for its own
// descendants.
func TestMustersOfOneCommandTakeTurns(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b"} {
		if err := syscall.Mkfifo(in(name+".gate"), 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, in(name+".deep.yaml"), fmt.Sprintf(`
muster: {resources: [{exec: [{"echo yes > %s.held; read line < %[1]s.gate; touch %[1]s.finished": {provider: shell, cwd: %q, creates: %[2]s/%[1]s.finished}}]}]}
`, name, dir))
		write(t, in(name+".yaml"), fmt.Sprintf(`
muster: {resources: [{exec: [{"muster apply %s.deep.yaml > %[1]s.deep.log 2>&1": {provider: shell, cwd: %q, creates: %[2]s/%[1]s.finished}}]}]}
`, name, dir))
	}
	outer := write(t, in("outer.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - both: {command: "muster apply a.yaml > a.log 2>&1 & muster apply b.yaml > b.log 2>&1; wait", provider: shell, cwd: %q, creates: %[1]s/a.finished}
`, dir))
	p := start(t, in("state"), "apply", outer)
	first, second := "a", "b"
	await(t, "one of them is at work", func() bool {
		if exists(in("b.held")) {
			first, second = "b", "a"
		}
		return exists(in(first + ".held"))
	})
	await(t, "the other one waits", func() bool {
		text, err := os.ReadFile(in(second + ".log"))
		return (err == nil && strings.Contains(string(text), "waiting for another run")) || exists(in(second+".held"))
	})
	if exists(in(second + ".held")) {
		t.Error("both are at work at the same time")
	}
	write(t, in(first+".gate"), "go\n")
	await(t, "its turn comes", func() bool { return exists(in(second + ".held")) })
	if !exists(in(first + ".finished")) {
		t.Error("it came before the other one had finished")
	}
	write(t, in(second+".gate"), "go\n")
	if code, text := p.wait(); code != 0 || !exists(in(second+".finished")) {
		t.Fatalf("exit code %d\n%s", code, text)
	}
}

// TestMusterThatOutlivesItsRun starts a muster in the background. A later run waits for it as for its parent,
// and its commands belong to it.
func TestMusterThatOutlivesItsRun(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(in("gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, in("deep.yaml"), fmt.Sprintf("muster: {resources: [{exec: [touch deep: {cwd: %q, creates: %[1]s/deep}]}]}\n", dir))
	write(t, in("inner.yaml"), fmt.Sprintf(`
muster: {resources: [{exec: [inner: {command: "touch held; read line < gate; muster apply --no-wait deep.yaml > deep.log 2>&1", provider: shell, cwd: %q, creates: %[1]s/deep}]}]}
`, dir))
	outer := write(t, in("outer.yaml"), fmt.Sprintf(`
muster: {resources: [{exec: [outer: {command: "setsid muster apply inner.yaml > inner.log 2>&1 & until test -e held; do sleep 0.05; done", provider: shell, cwd: %q}]}]}
`, dir))
	state := in("state")
	muster(t, state, "apply", outer)
	other := write(t, in("other.yaml"), fmt.Sprintf("muster: {resources: [{exec: [touch other: {cwd: %q, creates: %[1]s/other}]}]}\n", dir))
	if code, text := start(t, state, "apply", "--no-wait", other).wait(); code != 1 || !strings.Contains(text, "another run holds the lock: muster apply inner.yaml") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	p := start(t, state, "apply", other)
	await(t, "it waits", func() bool { return strings.Contains(p.text.String(), "waiting for another run") })
	if exists(in("other")) {
		t.Error("both are at work at the same time")
	}
	write(t, in("gate"), "go\n")
	if code, text := p.wait(); code != 0 || !exists(in("other")) {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if text, err := os.ReadFile(in("deep.log")); err != nil || !exists(in("deep")) {
		t.Errorf("%v\n%s", err, text)
	}
}
