//go:build system

package rigs_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/rigs"
)

// TestUnitOfTheAgent runs muster in the shipped unit. Each command has a control group, and its processes end
// at its timeout.
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
	n.sh("systemctl stop muster; rm /etc/systemd/system/muster.service.d/once.conf; systemctl daemon-reload; systemctl reset-failed muster")
	serviceOfTheAgent(t, n)
}

// serviceOfTheAgent checks with systemd that the agent starts, reloads and stops, and checks its log in the
// journal, on a machine without NATS.
func serviceOfTheAgent(t *testing.T, n node) {
	t.Helper()
	n.write("/etc/muster/agent.yaml", "node: web01\n")
	// It takes longer than the watchdog waits.
	manifest := "muster: {resources: [{exec: [{long: {command: 'env > /root/env; sleep 7', provider: shell, creates: /root/done}}]}]}\n"
	n.write("/root/record.json", fmt.Sprintf(`{"key":"node.web01.long","good":{"key":"node.web01.long","revision":7,"value":%q}}`, base64.StdEncoding.EncodeToString([]byte(manifest))))
	n.sh(`mkdir -p -m 700 /var/lib/muster/assignments
install -m 600 /root/record.json /var/lib/muster/assignments/node.web01.long.json
printf '[Service]\nWatchdogSec=3\n' > /etc/systemd/system/muster.service.d/watchdog.conf
systemctl daemon-reload
muster agent check
systemctl start muster`)
	show := func(property string) string {
		return strings.TrimSpace(n.sh("systemctl show --value -p " + property + " muster"))
	}
	if got := show("ActiveState"); got != "active" || show("Type") != "notify" {
		t.Errorf("it is %s once systemctl start has returned", got)
	}
	awaitSaid(t, n, "systemctl show --value -p StatusText muster", "not connected, 1 manifest")
	awaitSaid(t, n, "muster agent status", "running    node.web01.long (")
	if r := n.Run("setpriv", "--reuid=65534", "--clear-groups", "muster", "agent", "status"); r.Code != 1 || !strings.Contains(r.Stderr, "only root and the user of the agent may ask it") {
		t.Errorf("another user gets %d: %s", r.Code, r.Stderr)
	}
	awaitSaid(t, n, "journalctl -o cat MUSTER_MANIFEST=node.web01.long MUSTER_RESOURCE=exec#long PRIORITY=4", "exec#long changed manifest=node.web01.long")
	if env := n.sh("cat /root/env"); strings.Contains(env, "NOTIFY_SOCKET") || strings.Contains(env, "WATCHDOG") {
		t.Errorf("a command has %s", env)
	}
	n.sh("muster agent log-level debug && systemctl reload muster")
	awaitSaid(t, n, "muster agent log-level", "info")
	if got := show("NRestarts"); got != "0" || show("ActiveState") != "active" {
		t.Errorf("a long command and a reload: %s restarts, %s", got, n.sh("journalctl -u muster --no-pager -n 30"))
	}
	// systemd restarts an agent that hangs.
	n.sh("kill -STOP $(systemctl show --value -p MainPID muster)")
	awaitSaid(t, n, "systemctl show -p NRestarts -p ActiveState muster", "NRestarts=1\nActiveState=active")
	n.sh("systemctl stop muster")
	if got := show("Result"); got != "success" {
		t.Errorf("it stops with %s: %s", got, n.sh("journalctl -u muster --no-pager -n 30"))
	}
	// The drop-in of the documentation restricts it, and it works.
	page, err := os.ReadFile(filepath.Join(rigs.Checkout(t), "docs/agent.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sandbox, _ := strings.Cut(string(page), "```ini\n")
	sandbox, _, _ = strings.Cut(sandbox, "```")
	n.write("/etc/systemd/system/muster.service.d/sandbox.conf", sandbox)
	n.write("/root/record.json", strings.Replace(n.sh("cat /var/lib/muster/assignments/node.web01.long.json"), base64.StdEncoding.EncodeToString([]byte(manifest)),
		base64.StdEncoding.EncodeToString([]byte("muster: {resources: [{exec: [{long: {command: 'touch /etc/written; touch /usr/refused || true', provider: shell, creates: /etc/written}}]}]}\n")), 1))
	n.sh("install -m 600 /root/record.json /var/lib/muster/assignments/node.web01.long.json; systemctl daemon-reload; systemctl start muster")
	awaitSaid(t, n, "ls /etc/written", "/etc/written")
	if got := n.sh("ls /usr/refused 2>/dev/null || true"); got != "" || show("ProtectSystem") != "strict" {
		t.Errorf("the sandbox lets it write %s", got)
	}
}

// awaitSaid waits until a command prints a text.
func awaitSaid(t *testing.T, n node, command, want string) {
	t.Helper()
	kvtest.Eventually(t, command, func() (bool, string) {
		r := n.Run("sh", "-c", command)
		return strings.Contains(r.Stdout, want), r.Stdout + r.Stderr
	})
}
