package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/natstest"
)

// startWaiting is start with an open standard input. It returns after muster has read the input.
func startWaiting(t *testing.T, state, text string, args ...string) (p *process, hasRead func() bool) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}

	return startReading(t, state, r, args...), func() bool {
		left, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		return left == 0
	}
}

// TestFirstSignalEndsWhatChangesNothing at once: reading, resolving and noop.
func TestFirstSignalEndsWhatChangesNothing(t *testing.T) {
	dir := t.TempDir()
	state, gate, asked := filepath.Join(dir, "state"), filepath.Join(dir, "gate"), filepath.Join(dir, "asked")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	release, came := make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "muster:\n")
		_ = http.NewResponseController(w).Flush()
		came <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	guarded := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - guarded: {command: touch changed, provider: shell, cwd: %q, unless: "echo > asked; read line < gate"}
        - after: {command: touch after, cwd: %[1]q}
`, dir))
	stdin := func(args ...string) func(*testing.T) (*process, func() bool) {
		return func(t *testing.T) (*process, func() bool) { return startWaiting(t, state, "{\"protocol\":", args...) }
	}
	for name, begin := range map[string]func(*testing.T) (*process, func() bool){
		"apply":        stdin("apply", "-"),
		"data":         stdin("apply", guarded, "--data", "-"),
		"a request":    stdin("ensure", "api", "pipe"),
		"data resolve": stdin("data", "resolve", "-"),
		"a server": func(t *testing.T) (*process, func() bool) {
			return start(t, state, "apply", server.URL+"/m.yaml"), func() bool { return len(came) > 0 }
		},
		"noop": func(t *testing.T) (*process, func() bool) {
			return start(t, state, "apply", "--noop", guarded), func() bool { return exists(asked) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, busy := begin(t)
			await(t, "it is busy", busy)
			p.signal(syscall.SIGTERM)
			if code, text := p.wait(); code != 1 || !strings.Contains(text, "interrupted") || strings.Contains(text, "pending change") {
				t.Errorf("exit code %d\n%s", code, text)
			}
			if exists(filepath.Join(dir, "changed")) || exists(filepath.Join(dir, "after")) || exists(state) {
				t.Error("something was changed")
			}
		})
	}
}

// TestFirstSignalEndsAGuard interrupts the guard of a run with changes. The guarded command does not run.
func TestFirstSignalEndsAGuard(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 1, syscall.SIGINT: 130} {
		t.Run(signal.String(), func(t *testing.T) { firstSignalEndsAGuard(t, signal, want) })
	}
}

func firstSignalEndsAGuard(t *testing.T, signal syscall.Signal, exit int) {
	dir := t.TempDir()
	gate, asked := filepath.Join(dir, "gate"), filepath.Join(dir, "asked")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - before: {command: touch before, cwd: %q}
        - guarded: {command: touch changed, provider: shell, cwd: %[1]q, unless: "echo > asked; read line < gate"}
        - after: {command: touch after, cwd: %[1]q}
`, dir))
	p := start(t, filepath.Join(dir, "state"), "apply", manifest)
	await(t, "the guard is asked", func() bool { return exists(asked) })
	p.signal(signal)
	code, text := p.wait()
	for _, want := range []string{"exec#before changed", "exec#guarded not run", "exec#after not run", "interrupted", "outcome=notrun"} {
		if code != exit || !strings.Contains(text, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, text)
		}
	}
	if !exists(filepath.Join(dir, "before")) || exists(filepath.Join(dir, "changed")) || exists(filepath.Join(dir, "after")) {
		t.Error("something else was changed")
	}
}

// TestInterruptWhileWaitingForTheLock ends at once with an error: nothing has started.
func TestInterruptWhileWaitingForTheLock(t *testing.T) {
	dir := t.TempDir()
	state, gate := filepath.Join(dir, "state"), filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	const text = "muster: {resources: [{exec: [x: {command: %q, provider: shell, cwd: %q}]}]}\n"
	holder := start(t, state, "apply", write(t, filepath.Join(dir, "holds.yaml"), fmt.Sprintf(text, "echo > held; read line < gate", dir)))
	await(t, "the lock is held", func() bool { return exists(filepath.Join(dir, "held")) })
	p := start(t, state, "apply", write(t, filepath.Join(dir, "waits.yaml"), fmt.Sprintf(text, "touch changed", dir)))
	await(t, "it waits", func() bool { return strings.Contains(p.text.String(), "waiting for another run") })
	p.signal(syscall.SIGINT)
	code, said := p.wait()
	if code != 130 || strings.Contains(said, "pending change") || strings.Contains(said, "context canceled") || !strings.Contains(said, "gave up waiting for muster apply") || !strings.Contains(said, "interrupted") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	write(t, gate, "go\n")
	if code, said := holder.wait(); code != 0 || exists(filepath.Join(dir, "changed")) {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// TestNoopOfABundle writes nothing but to the system's temporary directory, and nothing stays there.
func TestNoopOfABundle(t *testing.T) {
	dir := t.TempDir()
	temp, bundle := filepath.Join(dir, "tmp"), filepath.Join(dir, "b.tar.gz")
	// /proc refuses new files.
	const state = "/proc/muster/state"
	manifest := fmt.Sprintf("muster: {resources: [{file: [{%s/made: {source: files/x, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}\n", dir, os.Geteuid(), os.Getegid())
	write(t, bundle, string(hosttest.TarGz(t, 0o644, "manifest.yaml", manifest, "files/x", "content\n")))
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	for _, how := range []string{"--noop", "--render"} {
		if code, text := start(t, state, "apply", how, bundle).wait(); code != 0 || !strings.Contains(text, "made") {
			t.Errorf("%s: exit code %d\n%s", how, code, text)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", how, left, err)
		}
	}
}

// TestInterruptedPing: an interrupted ping also lists the nodes that have not answered.
func TestInterruptedPing(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) *process {
		t.Helper()
		return start(t, filepath.Join(dir, "state"), append([]string{"--server", server.URL()}, args...)...)
	}
	if code, text := fleet("fleet", "init", "--yes").wait(); code != 0 {
		t.Fatal(text)
	}
	agent := fleet("agent", "run", "--node", "n1")
	defer func() {
		agent.signal(syscall.SIGTERM)
		agent.wait()
	}()
	await(t, "the agent answers", func() bool {
		code, _ := fleet("fleet", "ping", "--node", "n1", "--timeout", "1s").wait()
		return code == 0
	})
	ping := fleet("fleet", "ping", "--node", "n1", "--node", "n9", "--timeout", "1m")
	await(t, "an answer is shown", func() bool { return strings.Contains(ping.text.String(), "n1  ") })
	ping.signal(syscall.SIGINT)
	code, text := ping.wait()
	if !strings.Contains(text, "muster: interrupted: 1 node answered, half of them within ") || !strings.Contains(text, "; no answer yet from: n9\n") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
