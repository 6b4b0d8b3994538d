package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/racing"
)

// files is how many files a run that is killed manages.
const files = 1000

func content(i int) string { return fmt.Sprintf("file %d\n%s\n", i, strings.Repeat("x", i)) }

func filesManifest(t *testing.T, dir string) string {
	t.Helper()
	var m strings.Builder
	m.WriteString("muster:\n  resources:\n    - file:\n")
	for i := range files {
		fmt.Fprintf(&m, "        - %s/file%d: {content: %q, owner: \"%d\", group: \"%d\", mode: 0640}\n", dir, i, content(i), os.Geteuid(), os.Getegid())
	}

	return write(t, filepath.Join(t.TempDir(), "files.yaml"), m.String())
}

// checkFiles fails for a file that is neither as it was before the run nor as it must be after it.
func checkFiles(t *testing.T, dir string, complete bool) (written int) {
	t.Helper()
	for i := range files {
		path := filepath.Join(dir, fmt.Sprintf("file%d", i))
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) && !complete {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case string(text) == "before" && !complete:
		case string(text) != content(i):
			t.Fatalf("%s has half of its content: %d bytes", path, len(text))
		case info.Mode() != 0o640:
			t.Fatalf("%s has mode %v", path, info.Mode())
		default:
			written++
		}
	}

	return written
}

// TestKillAtRandomMoments kills muster apply with SIGKILL: whatever the moment,
// no file has a wrong mode or half its content, and the next run leaves no litter.
func TestKillAtRandomMoments(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	manifest := filesManifest(t, dir)
	muster(t, state, "apply", manifest)
	// A process that is killed reports no race.
	killed, partly, rounds := 0, 0, racing.Less(20, 4)
	for round := range rounds {
		for i := range files {
			path := filepath.Join(dir, fmt.Sprintf("file%d", i))
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				write(t, path, "before")
			}
		}
		p := start(t, state, "--log-level", "error", "apply", manifest)
		// A moment of its progress, which takes longer in one run than in another, or any
		// before it.
		if round%4 > 0 {
			moment := filepath.Join(dir, fmt.Sprintf("file%d", rand.N(files)))
			await(t, moment+" is written", func() bool {
				info, err := os.Lstat(moment)
				return err == nil && info.Mode() == 0o640
			})
		}
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		if code, _ := p.wait(); code == -1 {
			killed++
		}
		if n := checkFiles(t, dir, false); n > 0 && n < files {
			partly++
		}
		muster(t, state, "--log-level", "error", "apply", manifest)
		checkFiles(t, dir, true)
		if left := litter(t, dir); len(left) > 0 {
			t.Fatalf("litter after the next run: %v", left)
		}
	}
	t.Logf("%d of %d runs were killed, %d of them in the middle of writing", killed, rounds, partly)
	if killed == 0 {
		t.Fatal("no run was killed: this test has shown nothing")
	}
}

// TestSignalFinishesTheChangeInHand sends a signal to a run whose command has a child. The command finishes,
// and the run reports the other resources as not run.
func TestSignalFinishesTheChangeInHand(t *testing.T) {
	for name, of := range map[string]struct {
		signal syscall.Signal
		code   int
	}{"TERM": {syscall.SIGTERM, 1}, "INT": {syscall.SIGINT, 130}, "HUP": {syscall.SIGHUP, 1}} {
		t.Run(name, func(t *testing.T) { finishesTheChangeInHand(t, of.signal, of.code) })
	}
}

func finishesTheChangeInHand(t *testing.T, signal syscall.Signal, want int) {
	dir := t.TempDir()
	gate, held := filepath.Join(dir, "gate"), filepath.Join(dir, "held")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - hold: {command: "echo yes > held; read line < gate; echo $line > finished", provider: shell, cwd: %q, creates: %[1]s/finished}
        - after: {command: touch after, cwd: %[1]q, creates: %[1]s/after}
`, dir))
	p := start(t, filepath.Join(dir, "state"), "apply", manifest)
	await(t, "the command runs", func() bool { return exists(held) })
	p.signal(signal)
	await(t, "the signal was seen", func() bool { return strings.Contains(p.text.String(), "shutting down after the pending change") })
	write(t, gate, "go\n")
	code, text := p.wait()
	if code != want || !exists(filepath.Join(dir, "finished")) || exists(filepath.Join(dir, "after")) {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	for _, want := range []string{"exec#hold changed", "exec#after not run", "not_run=1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestReaderThatLeaves closes the pipe of the events. The run continues to its end.
func TestReaderThatLeaves(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("muster", "apply", "--json", filesManifest(t, dir))
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+filepath.Join(t.TempDir(), "state"))
	cmd.Stdout = w
	if err := errors.Join(cmd.Start(), w.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	checkFiles(t, dir, true)
}

// TestSecondTermKillsTheCommand and all its children.
func TestSecondTermKillsTheCommand(t *testing.T) {
	dir := t.TempDir()
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - hang: {command: "sleep 1000 & echo $! > child; wait", provider: shell, cwd: %q, creates: %[1]s/never}
`, dir))
	p := start(t, filepath.Join(dir, "state"), "apply", manifest)
	child := 0
	await(t, "the child runs", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "child"))
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		_, err = fmt.Sscan(string(text), &child)
		return err == nil
	})
	p.signal(syscall.SIGTERM)
	await(t, "the signal was seen", func() bool { return strings.Contains(p.text.String(), "shutting down after the pending change") })
	p.signal(syscall.SIGTERM)
	code, text := p.wait()
	if code != 1 || !strings.Contains(text, "exec#hang failed") || !strings.Contains(text, "aborted by the second signal (terminated)") {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	await(t, "the child is gone", func() bool { return !alive(child) })
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")

	return !strings.HasPrefix(rest, "Z")
}
