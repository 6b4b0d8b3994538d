package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
)

// TestGuides follows the guides with the fleet of the tutorial, one after the other. It stops and starts the
// server where the guides use systemd. Another revision is pushed between the backup and the restore: the
// node runs it, and keeps it when the server has the older one again.
func TestGuides(t *testing.T) {
	t.Parallel()
	f := follow(t)
	tutorial, _, _ := strings.Cut(docsPage(t, "tutorial.md"), "## Drift")
	f.page(tutorial, func(markdown.Block) {})
	for _, guide := range []string{"dashboards.md", "monitoring-and-alerts.md"} {
		f.page(docsPage(t, "guides/"+guide), func(b markdown.Block) { t.Errorf("%s:%d: nobody runs this", guide, b.Line) })
	}
	server := f.terminals[0]
	starts := 0
	f.page(docsPage(t, "guides/backup-and-restore.md"), func(b markdown.Block) {
		if b.Info == "stop" {
			f.interrupt(server)
			return
		}
		server = f.open("cd ~/fleet\nnats-server -c nats.conf\n")
		await(t, "the server is ready", func() bool { return strings.Contains(server.text.String(), "Server is ready") })
		if starts++; starts == 1 {
			f.must("sed -i 's/Welcome to the fleet/after the backup/' motd.yaml\nmuster fleet push --group web motd.yaml --wait")
			return
		}
		if text := f.must("cat /etc/motd"); text != "after the backup\n" {
			t.Errorf("the node has %s", text)
		}
		f.must("sed -i 's/after the backup/after the restore/' motd.yaml")
	})
	if text := f.must("cat /etc/motd"); starts != 2 || text != "after the restore\n" {
		t.Errorf("the server was started %d times, the node has %s", starts, text)
	}
}

// TestCommandsOfGuides: the muster commands in blocks that no test runs use existing flags.
func TestCommandsOfGuides(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/[gc]*/*.md")
	if err != nil || len(paths) < 6 {
		t.Fatal(paths, err)
	}
	command := regexp.MustCompile(`(?m)^(?:ExecStart=/usr/bin/)?muster((?: [a-z]+)*)(.*)$`)
	spans := regexp.MustCompile("`(muster [^`\n]*)`")
	help := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		shown := ""
		for _, b := range markdown.Blocks(string(text)) {
			shown += b.Text
		}
		for _, span := range spans.FindAllStringSubmatch(string(text), -1) {
			shown += span[1] + "\n"
		}
		for _, found := range command.FindAllStringSubmatch(shown, -1) {
			words := strings.Fields(found[1])
			words = words[:min(len(words), 2)]
			name := strings.Join(words, " ")
			if _, known := help[name]; !known {
				help[name] = muster(t, t.TempDir(), append(words, "--help")...)
			}
			flags, _, _ := strings.Cut(found[2]+" ", " -- ")
			for _, flag := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(flags, -1) {
				if !regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(strings.ReplaceAll(help[name], "--[no-]", "--no-")) {
					t.Errorf("%s: muster %s has no %s", path, name, flag)
				}
			}
		}
	}
	if len(help) < 12 {
		t.Errorf("only %d commands", len(help))
	}
}
