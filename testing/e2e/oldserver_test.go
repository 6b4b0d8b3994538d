package e2e

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestOldServerIsLoggedOnce has everything that an agent asks NATS for fail for one
// reason: the log has it once, and not once for each.
func TestOldServerIsLoggedOnce(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	p := start(t, filepath.Join(dir, "state"), "agent", "run", "--log-level", "debug", "--config-dir", dir, "--node", "n1", "--group", "web", "--server", server.Aged(t, "2.9.10"))
	lines := func(holds func(line string) bool) int {
		count := 0
		for line := range strings.Lines(p.text.String()) {
			if strings.Contains(line, "nats-server is too old: it has version 2.9.10, muster needs 2.11 or later") && holds(line) {
				count++
			}
		}
		return count
	}
	await(t, "it was tried again", func() bool { return lines(func(string) bool { return true }) > 12 })
	p.signal(syscall.SIGTERM)
	if code, text := p.wait(); code != 0 || lines(func(line string) bool { return !strings.Contains(line, " DEBUG ") }) != 1 {
		t.Errorf("the agent ended with %d\n%s", code, text)
	}
}
