package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestSecondSignalToAnAgent aborts the change in progress: the command and its children end, and the agent
// reports the result.
func TestSecondSignalToAnAgent(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	state, child := filepath.Join(dir, "state"), filepath.Join(dir, "child")
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, state, append([]string{"--server", server.URL()}, args...)...)
	}
	fleet("fleet", "init", "--yes")
	config := write(t, filepath.Join(dir, "agent.yaml"), "node: n1\nshutdown_timeout: 10m\nnats: {servers: [\""+server.URL()+"\"]}\n")
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - hold: {command: "sleep 10000 & echo $! > child.new; mv child.new child; wait", provider: shell, cwd: %q, creates: %[1]s/finished}
        - after: {command: touch after, cwd: %[1]q, creates: %[1]s/after}
`, dir))
	p := start(t, state, "agent", "run", "--config", config)
	fleet("fleet", "push", "--node", "n1", manifest)
	await(t, "the command runs", func() bool { return exists(child) })
	p.signal(syscall.SIGTERM)
	await(t, "the signal was seen", func() bool { return strings.Contains(p.text.String(), "shutting down") })
	if text := muster(t, state, "agent", "status", "--config", config); !strings.Contains(text, "shutting down for ") || !strings.Contains(text, "finishes the pending change of node.n1.m") {
		t.Errorf("its status is\n%s", text)
	}
	p.signal(syscall.SIGTERM)
	code, text := p.wait()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	pid := 0
	if _, err := fmt.Sscan(read(t, child), &pid); err != nil {
		t.Fatal(err)
	}
	await(t, "the command's child is gone", func() bool { return !alive(pid) })
	if exists(filepath.Join(dir, "after")) {
		t.Error("a further change was begun")
	}
	for _, want := range []string{"exec#hold failed", "aborted by the second signal (terminated)", "exec#after not run", "agent stopped"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if reports := fleet("fleet", "reports", "--no-follow"); !strings.Contains(reports, "failed") || !strings.Contains(reports, "stopped") {
		t.Errorf("the report is not in the stream:\n%s", reports)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}
