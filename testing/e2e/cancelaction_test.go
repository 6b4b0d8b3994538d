package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestCancelledActions: an operator with two runs in progress gets no third, and the refusal names them.
// Another operator cancels them. The command in the result cancels the part that a node has not started.
func TestCancelledActions(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) string {
		t.Helper()
		return muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	fleet("fleet", "init", "--yes")
	begin, begun, finish := filepath.Join(dir, "begin"), filepath.Join(dir, "begun"), filepath.Join(dir, "finish")
	manifest := fmt.Sprintf("muster: {resources: [{exec: [{\"touch %s; until test -e %s; do sleep 0.05; done\": {provider: shell, onlyif: test -e %s}}]}]}", begun, finish, begin)
	agent := start(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "web01", "--group", "web")
	t.Cleanup(func() { agent.signal(syscall.SIGINT); agent.wait() })
	await(t, "the node is known", func() bool { return strings.Contains(fleet("fleet", "nodes"), "web01") })
	fleet("fleet", "push", "--group", "web", "--name", "slow", "--wait", write(t, filepath.Join(dir, "slow.yaml"), manifest))
	write(t, begin, "")
	tokens := filepath.Join(dir, "tokens")
	anna := strings.TrimSpace(fleet("fleet", "token", "anna", "--role", "operate", "--file", tokens))
	bob := strings.TrimSpace(fleet("fleet", "token", "bob", "--role", "operate", "--file", tokens))
	s := serveActions(t, dir, server.URL(), tokens)
	await(t, "the node is shown", func() bool {
		_, text := s.do(http.MethodGet, "api/v1/nodes", nil, "Authorization", "Bearer "+anna)
		return strings.Contains(text, `"state":"ok"`)
	})

	const node = `{"target":{"nodes":["web01"]}}`
	var ids []string
	for range 2 {
		status, a := s.call("actions/run?wait=1", anna, node)
		if status != http.StatusAccepted || a["ended"] != nil {
			t.Fatalf("%d %v", status, a)
		}
		ids = append(ids, fmt.Sprint(a["id"]))
		await(t, "the first has begun", func() bool { _, err := os.Stat(begun); return err == nil })
	}
	status, problem := s.call("actions/run", anna, node)
	if status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(problem["detail"]), "2 of anna are in progress (run of web01 by anna since ") {
		t.Errorf("the third: %d %v", status, problem)
	}
	var command string
	for _, id := range ids {
		status, a := s.call("actions/"+id+"/cancel", bob, "")
		if status != http.StatusAccepted || a["ended"] == nil || a["cancelled_by"] != "bob" || a["error"] != "cancelled by bob" {
			t.Errorf("%d %v", status, a)
		}
		command = regexp.MustCompile(`muster fleet run --cancel '([^']*)'`).FindStringSubmatch(fmt.Sprint(a["notes"]))[1]
	}
	if text := fleet("fleet", "run", "--cancel", command, "--node", "web01"); !strings.Contains(text, "cancelled on 1 node") {
		t.Errorf("on the node: %s", text)
	}
	write(t, finish, "")
	if err := os.Remove(begin); err != nil {
		t.Fatal(err)
	}
	if status, a := s.call("actions/run?wait=50", anna, node); status != http.StatusAccepted || !strings.Contains(fmt.Sprint(a["states"]), "state:done") {
		t.Errorf("in their place: %d %v", status, a)
	}
	s.process.signal(syscall.SIGINT)
	if code, text := s.process.wait(); code != 0 || !regexp.MustCompile(`action cancelled action=\S+ by=bob`).MatchString(text) {
		t.Errorf("exit code %d: %s", code, text)
	}
}
