package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestClusterGuide follows the guide: a fleet on three servers survives the loss of any one of them.
func TestClusterGuide(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	addresses := strings.Join(urls, ",")
	dir := t.TempDir()
	state, config, path := filepath.Join(dir, "state"), filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "file")
	try := func(args ...string) (int, string) {
		return start(t, state, append([]string{"--server", addresses}, args...)...).wait()
	}
	says := func(what, want string, args ...string) {
		t.Helper()
		all := "" // an attempt that failed later may have printed the result
		defer func() {
			if t.Failed() {
				t.Logf("the command printed:\n%s", all)
			}
		}()
		await(t, what, func() bool {
			code, text := try(args...)
			all += text
			return code == 0 && strings.Contains(all, want)
		})
	}
	says("the servers know each other, and one has each stream", "use --replicas 3 to survive the loss of a server", "fleet", "init", "--yes")
	blocks := markdown.Blocks(docsPage(t, "guides/clusters.md"))
	if len(blocks) != 1 || blocks[0].Info != "run" {
		t.Fatalf("%+v", blocks)
	}
	command := strings.Fields(strings.TrimSpace(blocks[0].Text))
	says("the command of the guide", "done", append(command[1:], "--yes")...)
	write(t, config, fmt.Sprintf("node: n1\ninterval: 1h\nnats: {servers: [\"%s\"]}\n", strings.Join(urls, `", "`)))
	agent := start(t, state, "agent", "run", "--config", config)
	for i, s := range servers {
		s.Stop()
		content := fmt.Sprint("without server ", i)
		manifest := write(t, filepath.Join(dir, "app.yaml"), fmt.Sprintf("muster: {resources: [{file: [{%s: {content: %s, owner: \"%d\", group: \"%d\", mode: 0600}}]}]}", path, content, os.Geteuid(), os.Getegid()))
		says("pushed, and run, "+content, "1/1 nodes up to date", "fleet", "push", "--node", "n1", "--name", "app", manifest, "--wait", "--timeout", "60s")
		if got, err := os.ReadFile(path); string(got) != content {
			t.Errorf("the node has %q, %v, want %q", got, err, content)
		}
		s.Start(t)
	}
	agent.signal(syscall.SIGTERM)
	if code, text := agent.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
