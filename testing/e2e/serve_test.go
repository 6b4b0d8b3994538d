package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestServe: it prints where it serves, shows a node and its run, and ends at ctrl-C with success.
func TestServe(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) {
		t.Helper()
		muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	if code, text := start(t, dir, "fleet", "serve", "--listen", "0.0.0.0:8420").wait(); code != 64 || !strings.Contains(text, "--listen 0.0.0.0:8420: only loopback addresses such as 127.0.0.1 are served") {
		t.Errorf("another address: exit code %d, %s", code, text)
	}
	fleet("fleet", "init", "--yes")
	serving := start(t, dir, "--server", server.URL(), "fleet", "serve", "--listen", "127.0.0.1:0")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	await(t, "it prints its address", func() bool { return address.MatchString(serving.text.String()) })
	get := func() string {
		response, err := http.Get(address.FindString(serving.text.String()))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response.Status, err)
		}
		return string(text)
	}
	manifest := fmt.Sprintf("muster: {resources: [{file: [{%s/motd: {content: x, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", dir, os.Geteuid(), os.Getegid())
	fleet("fleet", "push", "--all", "--name", "motd", write(t, filepath.Join(dir, "motd.yaml"), manifest))
	muster(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "n1", "--once")
	await(t, "the node and its run are shown", func() bool {
		text := get()
		return strings.Contains(text, `"state":"stopped"`) && strings.Contains(text, `"history":true`) && strings.Contains(text, `"runs":1`)
	})
	serving.signal(syscall.SIGINT)
	if code, text := serving.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, text)
	}
}
