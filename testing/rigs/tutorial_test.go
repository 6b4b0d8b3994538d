//go:build system

package rigs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/rigs"
)

// reader follows the tutorial as root on a machine, block by block.
type reader struct {
	node
	// operator is what the shell of the operator keeps from the blocks before.
	operator string
	// terminals counts the others.
	terminals int
	// awaited counts the texts that terminals printed.
	awaited map[string]int
}

// tutorialShell begins each block.
const tutorialShell = "exec 2>&1; export HOME=/root NO_COLOR=1; cd\n"

// run runs a block in the shell of the operator.
func (r *reader) run(b markdown.Block) rigs.Result {
	r.t.Helper()

	return r.Run("sh", "-euc", tutorialShell+r.operator+b.Text)
}

// open runs a block in a new terminal, and waits until it prints the text.
func (r *reader) open(b markdown.Block, want string) {
	r.t.Helper()
	r.terminals++
	unit := fmt.Sprintf("terminal%d", r.terminals)
	if out := r.Run("systemd-run", "--quiet", "--unit", unit, "sh", "-euc", tutorialShell+b.Text); out.Code != 0 {
		r.t.Fatalf("line %d: %s", b.Line, out.Stderr)
	}
	kvtest.Eventually(r.t, fmt.Sprintf("line %d: it prints %q", b.Line, want), func() (bool, string) {
		out := r.Run("journalctl", "-q", "-o", "cat", "-u", unit)
		return missing(want, out.Stdout) == "", out.Stdout
	})
}

// await waits until the terminal that a block of text names prints it once more.
func (r *reader) await(b markdown.Block) {
	r.t.Helper()
	text := strings.TrimSpace(b.Text)
	r.awaited[b.Info+text]++
	kvtest.Eventually(r.t, fmt.Sprintf("line %d: terminal %s prints %q", b.Line, b.Info, text), func() (bool, string) {
		out := r.Run("journalctl", "-q", "-o", "cat", "-u", "terminal"+b.Info)
		return strings.Count(out.Stdout, text) >= r.awaited[b.Info+text], out.Stdout
	})
}

// follow follows one block, before a text that it prints.
func (r *reader) follow(b markdown.Block, want string) {
	r.t.Helper()
	switch strings.TrimPrefix(b.Info, "debian ") {
	case "run":
		out := r.run(b)
		if line := missing(want, out.Stdout); out.Code != 0 || line != "" {
			r.t.Fatalf("line %d: exit code %d, %q is not in its place in\n%s", b.Line, out.Code, line, out.Stdout)
		}
		for line := range strings.Lines(b.Text) {
			if strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "cd ") {
				r.operator += line
			}
		}
	case "look":
		kvtest.Eventually(r.t, fmt.Sprintf("line %d: it prints %q", b.Line, want), func() (bool, string) {
			out := r.run(b)
			return out.Code == 0 && missing(want, out.Stdout) == "", out.Stdout
		})
	case "terminal":
		r.open(b, want)
	case "download":
	default:
		r.t.Fatalf("line %d: unknown block %q", b.Line, b.Info)
	}
}

// TestTutorialOnDebian follows docs/tutorial.md to its end, with its package and its service.
func TestTutorialOnDebian(t *testing.T) {
	r := &reader{node: node{Machine: rigs.BootWith(t, "nginx"), t: t}, awaited: map[string]int{}}
	r.Copy(build(t), "/usr/local/bin/muster")
	r.Copy(natsServer(t), "/usr/local/bin/natsserver")
	// nats-server finds the process to reload by pgrep, which this Debian lacks.
	r.write("/usr/local/bin/nats-server", "#!/bin/sh -e\nif [ \"$*\" = '--signal reload' ]; then kill -HUP $(cat /run/nats.pid); exit; fi\necho $$ >/run/nats.pid\nexec natsserver \"$@\"\n")
	r.sh("chmod 755 /usr/local/bin/nats-server")
	page, err := os.ReadFile(filepath.Join(rigs.Checkout(t), "docs/tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := append(markdown.Blocks(string(page)), markdown.Block{})
	for i, b := range blocks[:len(blocks)-1] {
		want := ""
		if next := blocks[i+1]; next.Language == "text" && next.Info == "" {
			want = next.Text
		}
		switch b.Language {
		case "text":
			if b.Info != "" {
				r.await(b)
			}
		case "yaml":
			name, _, _ := strings.Cut(b.Text, "\n")
			r.write("/root/fleet/"+strings.TrimPrefix(name, "# "), b.Text)
		case "sh":
			r.follow(b, want)
		}
	}
	for _, command := range []string{"systemctl is-active nginx", "systemctl is-enabled nginx", "dpkg -s nginx"} {
		if out := r.Run("sh", "-c", command); out.Code != 0 {
			t.Errorf("%s: %s", command, out.Stdout)
		}
	}
	if r.terminals != 4 {
		t.Errorf("%d terminals", r.terminals)
	}
}
