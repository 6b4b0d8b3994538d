//go:build system

package rigs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/rigs"
)

// TestUnitOfTheAgent has the unit that is shipped run muster: each command has a
// control group of its own, and nothing of it outlives its time-out.
func TestUnitOfTheAgent(t *testing.T) {
	n := node{Machine: rigs.Boot(t), t: t}
	n.Copy(build(t), "/usr/local/bin/muster")
	n.Copy(filepath.Join(rigs.Checkout(t), "deploy/muster.service"), "/etc/systemd/system/muster.service")
	// It changes its session twice and forgets its environment.
	n.write("/root/escapes", "setsid env -i sh -c 'setsid sh -c \"echo \\$\\$ > /root/pid; exec sleep 1000\" & exit' &\nsleep 1000\n")
	n.write("/root/m.yaml", `
muster:
  resources:
    - exec:
        - defaults: {provider: shell}
        - look: {command: "umask > /root/umask; cat /proc/self/cgroup > /root/group"}
        - escapes: {command: sh /root/escapes, timeout: 2s}
        - left: {command: "kill -0 $(cat /root/pid) 2>/dev/null && touch /root/alive; true"}
`)
	n.sh(`mkdir /etc/systemd/system/muster.service.d
printf '[Service]\nType=oneshot\nRestart=no\nExecStart=\nExecStart=/usr/local/bin/muster apply /root/m.yaml\n' > /etc/systemd/system/muster.service.d/once.conf
systemctl daemon-reload`)
	if got := n.sh("systemctl show -p Delegate -p UMask muster"); !strings.Contains(got, "Delegate=yes") || !strings.Contains(got, "UMask=0022") {
		t.Errorf("the unit has %q", got)
	}
	if r := n.Run("systemctl", "start", "muster"); r.Code == 0 {
		t.Error("a command that timed out did not fail the run")
	}
	if got := n.sh("cat /root/umask; cat /root/group"); !strings.HasPrefix(got, "0022\n") || !strings.Contains(got, "/muster.service/muster-") {
		t.Errorf("the command ran as %q", got)
	}
	if got := n.sh("test -s /root/pid && ls /root/alive 2>/dev/null || true"); got != "" {
		t.Errorf("the command outlived its time-out: %s", n.sh("journalctl -u muster --no-pager"))
	}
}
