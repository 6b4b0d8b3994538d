package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestFullServer tests that commands name the server and /healthz while the server stores no states, and show the node as
// up to date after room was freed.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, natstest.WithMaxStore(64<<20), natstest.WithConfig("server_name: n0"))
	dir := t.TempDir()
	state, path := filepath.Join(dir, "state"), filepath.Join(dir, "file")
	run := func(args ...string) (int, string) {
		return start(t, state, append([]string{"--server", server.URL(), "fleet"}, args...)...).wait()
	}
	config := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf("node: n1\ninterval: 1h\nheartbeat: 1s\nstate_ttl: 10s\nnats: {servers: [%q]}\n", server.URL()))
	manifest := func(content string) string {
		return write(t, filepath.Join(dir, "app.yaml"), fmt.Sprintf("muster: {resources: [{file: [{%s: {content: %s, owner: \"%d\", group: \"%d\", mode: 0600}}]}]}", path, content, os.Geteuid(), os.Getegid()))
	}
	if code, text := run("init", "--yes", "--report-size", "8MB"); code != 0 {
		t.Fatal(text)
	}
	agent := start(t, state, "agent", "run", "--config", config)
	await(t, "the node is known", func() bool { _, text := run("nodes"); return strings.Contains(text, "n1") })
	if code, text := run("push", "--node", "n1", "--name", "app", manifest("one"), "--wait", "--timeout", "60s"); code != 0 {
		t.Fatal(text)
	}

	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(server.Connect(t), "") })
	free := kvtest.FillServer(t, store)
	const problem = "the NATS server n0 stores no states of nodes since "
	await(t, "status names the problem", func() bool {
		code, text := run("status")
		return code == 0 && strings.Contains(text, "incomplete "+problem) && strings.Contains(text, "free disk space, check its /healthz") && strings.Contains(text, "n1 reports: state not stored since ")
	})
	if code, text := run("push", "--node", "n1", "--name", "app", manifest("two")); code == 0 || !strings.Contains(text, "no room in JetStream") || !strings.Contains(text, "of the server n0, and check its /healthz") {
		t.Errorf("a push: %d, %s", code, text)
	}
	await(t, "the node counts as unreachable", func() bool { _, text := run("nodes"); return strings.Contains(text, "unreachable") })
	if code, text := run("wait", "app", "--timeout", "0"); code != 1 || !strings.Contains(text, "app: the statuses may be old: "+problem) {
		t.Errorf("wait: %d, %s", code, text)
	}

	free()
	await(t, "a push arrives", func() bool {
		code, _ := run("push", "--node", "n1", "--name", "app", manifest("three"), "--wait", "--timeout", "60s")
		return code == 0
	})
	if code, text := run("status"); code != 0 || strings.Contains(text, "incomplete") || !strings.Contains(text, "1: 1 ok") {
		t.Errorf("afterwards: %d, %s", code, text)
	}
	agent.signal(syscall.SIGTERM)
	if code, text := agent.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestUnstoredStates tests that commands do not take a node for gone while the server stores no states: push --wait waits
// for it, no command advises to forget it, and fleet nodes and fleet query name the problem.
func TestUnstoredStates(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, natstest.WithConfig("server_name: n0"))
	dir := t.TempDir()
	state, path := filepath.Join(dir, "state"), filepath.Join(dir, "file")
	begin := func(args ...string) *process {
		return start(t, state, append([]string{"--server", server.URL(), "fleet"}, args...)...)
	}
	run := func(args ...string) (int, string) { return begin(args...).wait() }
	config := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf("node: n1\ninterval: 1h\nheartbeat: 1s\nstate_ttl: 10s\nnats: {servers: [%q]}\n", server.URL()))
	push := func(content string, more ...string) []string {
		manifest := write(t, filepath.Join(dir, "app.yaml"), fmt.Sprintf("muster: {resources: [{file: [{%s: {content: %s, owner: \"%d\", group: \"%d\", mode: 0600}}]}]}", path, content, os.Geteuid(), os.Getegid()))
		return append([]string{"push", "--node", "n1", "--name", "app", manifest, "--wait"}, more...)
	}
	if code, text := run("init", "--yes", "--report-size", "8MB"); code != 0 {
		t.Fatal(text)
	}
	agent := start(t, state, "agent", "run", "--config", config)
	await(t, "the node is known", func() bool { _, text := run("nodes"); return strings.Contains(text, "n1") })
	if code, text := run(push("one", "--timeout", "60s")...); code != 0 || strings.Contains(text, "stores no states") {
		t.Fatal(text)
	}

	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(server.Connect(t), "") })
	mend := kvtest.FailWrites(t, server, store, kvstore.KVStream(store.Names.Nodes))
	const problem, remedy = "the NATS server n0 stores no states of nodes since ", "restart the server if it still refuses writes"
	for _, args := range [][]string{{"nodes"}, {"nodes", "--json"}, {"query"}, {"query", "--json"}} {
		await(t, "the node is unreachable", func() bool {
			code, text := run(args...)
			return code == 0 && strings.Contains(text, "unreachable") && strings.Contains(text, problem) && strings.Contains(text, remedy)
		})
	}
	code, text := run(push("two", "--timeout", "2s")...)
	for _, want := range []string{"app: the statuses may be old: " + problem, remedy, " after 2s: 1 unreachable (n1)"} {
		if code != 1 || !strings.Contains(text, want) {
			t.Errorf("push: %d, no %q:\n%s", code, want, text)
		}
	}
	for _, args := range [][]string{{"wait", "app", "--timeout", "0"}, {"forget", "n1"}} {
		code, also := run(args...)
		if code != 1 || !strings.Contains(also, problem) {
			t.Errorf("%s: %d, %s", args[0], code, also)
		}
		text += also
	}
	if strings.Contains(text, "gone for good") || strings.Contains(text, "forgotten") {
		t.Errorf("a healthy node counts as gone: %s", text)
	}

	waiting := begin(push("three", "--timeout", "60s")...)
	await(t, "the push waits", func() bool { return strings.Contains(waiting.text.String(), problem) })
	mend()
	server.Restart(t)
	if code, text := waiting.wait(); code != 0 {
		t.Errorf("the push ends with %d: %s", code, text)
	}
	for _, name := range []string{"nodes", "query"} {
		if code, text := run(name); code != 0 || strings.Contains(text, "incomplete") || strings.Contains(text, "unreachable") {
			t.Errorf("%s afterwards: %d, %s", name, code, text)
		}
	}
	agent.signal(syscall.SIGTERM)
	if code, text := agent.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
