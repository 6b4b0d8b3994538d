package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestHangup reads the configuration again: a wrong one is refused, other groups
// are taken over, and neither loses the manifests of a bucket that was lost.
func TestHangup(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	state, config := filepath.Join(dir, "state"), filepath.Join(dir, "agent.yaml")
	fleet := func(args ...string) {
		t.Helper()
		muster(t, state, append([]string{"--server", server.URL()}, args...)...)
	}
	configure := func(more string) {
		write(t, config, "node: n1\ninterval: 1s\nnats: {servers: [\""+server.URL()+"\"]}\n"+more)
	}
	manifest := func(name string) string {
		text := fmt.Sprintf("muster: {resources: [{file: [{%s/%s: {content: x, owner: \"%d\", group: \"%d\", mode: 0600}}]}]}", dir, name, os.Geteuid(), os.Getegid())
		return write(t, filepath.Join(dir, name+".yaml"), text)
	}
	has := func(name string) func() bool { return func() bool { return exists(filepath.Join(dir, name)) } }

	configure("")
	fleet("fleet", "init", "--yes")
	p := start(t, state, "agent", "run", "--config", config)
	fleet("fleet", "push", "--node", "n1", manifest("own"))
	await(t, "the node's manifest is applied", has("own"))

	configure("intervall: 5s\n")
	p.signal(syscall.SIGHUP)
	await(t, "a wrong configuration is refused", func() bool { return strings.Contains(p.text.String(), "did you mean `interval`?") })

	nodes := func() string {
		_, text := start(t, state, "--server", server.URL(), "fleet", "nodes").wait()
		return text
	}
	await(t, "operators see it", func() bool {
		return strings.Contains(nodes(), "configuration rejected, the one before stays in effect")
	})

	fleet("fleet", "push", "--yes", "--group", "blue", manifest("blue"))
	configure("groups: [blue]\n")
	p.signal(syscall.SIGHUP)
	await(t, "the group's manifest is applied", has("blue"))
	await(t, "operators see that it is in effect", func() bool { return !strings.Contains(nodes(), "configuration rejected") })

	js, err := jetstream.New(server.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "KV_MUSTER_MANIFESTS"); err != nil {
		t.Fatal(err)
	}
	fleet("fleet", "init", "--yes")
	configure("groups: [blue, green]\n")
	p.signal(syscall.SIGHUP)
	fleet("fleet", "push", "--yes", "--group", "green", manifest("green"))
	await(t, "the new group's manifest is applied", has("green"))
	for _, name := range []string{"own", "blue"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		await(t, "a manifest that the bucket lost stays in force", has(name))
	}
	p.signal(syscall.SIGTERM)
	if code, text := p.wait(); code != 0 || strings.Contains(text, "panicked") {
		t.Fatalf("exit code %d\n%s", code, text)
	}
}

// TestNohup sends SIGHUP to programs that ignore it: a run comes to its end, and an agent reads its configuration again.
func TestNohup(t *testing.T) {
	dir := t.TempDir()
	gate, held := filepath.Join(dir, "gate"), filepath.Join(dir, "held")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	run := startNohup(t, filepath.Join(dir, "state"), "apply", write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - exec:
        - hold: {command: "echo yes > held; read line < gate", provider: shell, cwd: %q}
        - after: {command: touch after, cwd: %[1]q}
`, dir)))
	await(t, "the command runs", func() bool { return exists(held) })
	run.signal(syscall.SIGHUP)
	write(t, gate, "go\n")
	if code, text := run.wait(); code != 0 || !exists(filepath.Join(dir, "after")) {
		t.Errorf("exit code %d\n%s", code, text)
	}

	config := write(t, filepath.Join(dir, "agent.yaml"), "node: n1\n")
	agent := startNohup(t, filepath.Join(dir, "state"), "agent", "run", "--config", config)
	await(t, "the agent runs", func() bool { return strings.Contains(agent.text.String(), "agent started") })
	write(t, config, "intervall: 5s\n")
	agent.signal(syscall.SIGHUP)
	await(t, "it reads its configuration", func() bool { return strings.Contains(agent.text.String(), "did you mean `interval`?") })
	agent.signal(syscall.SIGTERM)
	if code, text := agent.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
