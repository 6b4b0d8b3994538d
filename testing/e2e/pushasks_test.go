package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestPushAsksOfUnknownGroups checks that commands ask on a terminal before they change something for a group that no
// known node is in. They do not ask with --yes, or while the fleet has no nodes.
func TestPushAsksOfUnknownGroups(t *testing.T) {
	dir := t.TempDir()
	server := []string{"--server", natstest.Start(t).URL()}
	muster(t, dir, append([]string{"fleet", "init"}, server...)...)
	manifest := write(t, filepath.Join(dir, "motd.yaml"), "muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: \"0644\"}\n")
	push := func(more ...string) []string {
		return append(append([]string{"fleet", "push", "--group", "wbe", manifest}, more...), server...)
	}
	const asks = "no known node is in group wbe, did you mean web? (see muster fleet nodes). Continue? [y/N]"

	if _, text, done := editing(t, push()); done() != nil || strings.Contains(text.String(), "Continue?") || strings.Contains(text.String(), "undo") {
		t.Errorf("without nodes:\n%s", text)
	}
	muster(t, dir, append([]string{"fleet", "rm", "group.wbe.motd"}, server...)...)
	muster(t, dir, append([]string{"agent", "run", "--once", "--node", "web01", "--group", "web"}, server...)...)
	for _, answer := range []string{"n", "y"} {
		terminal, text, done := editing(t, push())
		await(t, "it asks", func() bool { return strings.Contains(text.String(), asks) })
		say(t, terminal, answer+"\n")
		err := done()
		if pushed := strings.Contains(text.String(), "group.wbe.motd revision"); pushed != (answer == "y") || (err == nil) != pushed {
			t.Errorf("answer %s: %v\n%s", answer, err, text)
		}
		if refused := strings.Contains(text.String(), "muster: not pushed"); refused != (answer == "n") {
			t.Errorf("answer %s:\n%s", answer, text)
		}
	}
	for _, args := range [][]string{{"fleet", "pause", "--group", "wbe"}, {"fleet", "run", "--group", "wbe"}, {"fleet", "exec", "--group", "wbe"}} {
		if args = append(args, server...); args[1] == "exec" {
			args = append(args, "--", "true")
		}
		terminal, text, done := editing(t, args)
		await(t, args[1]+" asks", func() bool { return strings.Contains(text.String(), asks) })
		say(t, terminal, "n\n")
		if done() == nil || !strings.Contains(text.String(), "muster: not ") {
			t.Errorf("%v:\n%s", args, text)
		}
	}
	_, text, done := editing(t, push("--yes", "--priority", "3"))
	if done() != nil || strings.Contains(text.String(), "Continue?") || !strings.Contains(text.String(), "muster fleet rollback group.wbe.motd") {
		t.Errorf("with --yes:\n%s", text)
	}
}
