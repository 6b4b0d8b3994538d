//go:build system

package rigs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/ways"
)

// fleetNode is a booted machine with a nats-server and an agent.
type fleetNode struct{ node }

// Muster runs muster on the machine.
func (n fleetNode) Muster(t *testing.T, stdin string, args ...string) (int, string) {
	t.Helper()
	n.write("/root/stdin", stdin)
	r := n.Run(append([]string{"sh", "-c", `exec muster "$@" </root/stdin`, "sh"}, args...)...)
	t.Log(r.Stderr)

	return r.Code, r.Stdout
}

// natsServer makes the server for a machine.
func natsServer(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "natsserver")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./testing/rigs/natsserver")
	cmd.Dir = rigs.Checkout(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}

	return binary
}

func newFleetNode(t *testing.T) fleetNode {
	t.Helper()
	n := fleetNode{newNode(t)}
	n.Copy(natsServer(t), "/usr/local/bin/natsserver")
	n.sh(`set -e
systemd-run --quiet --unit nats /usr/local/bin/natsserver 4222 /root/nats
until muster fleet init --yes; do sleep 0.1; done
systemd-run --quiet --unit agent --setenv=HOME=/root /usr/local/bin/muster agent run --node ` + ways.Node + ` --server nats://127.0.0.1:4222
until muster fleet nodes | grep ` + ways.Node + `; do sleep 0.1; done`)

	return n
}

// TestEveryWayComesToTheSame is the test of that name in testing/e2e, for types that need a machine.
func TestEveryWayComesToTheSame(t *testing.T) {
	n := newFleetNode(t)
	n.write("/etc/systemd/system/app.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n")
	reset := func(script string) func(*testing.T) { return func(*testing.T) { n.sh(script) } }
	const remove, install, stop = "dpkg --purge greeter", "dpkg -i /srv/repo/greeter.deb", "systemctl disable --now app"
	for name, c := range map[string]ways.Case{
		"package": {
			Properties: map[string]any{"name": "greeter", "ensure": "1.0", "cache_max_age": "24h"},
			Outcome:    model.OutcomeChanged, Reset: reset(remove),
		},
		"package, absent": {
			Properties: map[string]any{"name": "greeter", "ensure": "absent"},
			Outcome:    model.OutcomeChanged, Reset: reset(install),
		},
		"package, unknown": {
			Properties: map[string]any{"name": "no-such-package", "ensure": "1.0"},
			Outcome:    model.OutcomeFailed, Noop: model.OutcomeFailed, Reset: reset("true"),
		},
		"service": {
			Properties: map[string]any{"name": "app", "ensure": "running", "enable": true},
			Outcome:    model.OutcomeChanged, Reset: reset(stop),
		},
		"service, stopped": {
			Properties: map[string]any{"name": "app.service", "ensure": "stopped", "enable": false},
			Outcome:    model.OutcomeChanged, Reset: reset("systemctl enable --now app"),
		},
		"service, unknown": {
			Properties: map[string]any{"name": "no-such-service"},
			Outcome:    model.OutcomeFailed, Noop: model.OutcomeFailed, Reset: reset("true"), NoStatus: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, _, _ := strings.Cut(name, ",")
			c.Type, _ = resources.All().Get(of)
			ways.Compare(t, n, c)
		})
	}
}
