//go:build system

package rigs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/rigs"
)

// newPackaged boots a machine on which the unit that is shipped runs muster, with a server.
func newPackaged(t *testing.T) packaged {
	t.Helper()
	p := packaged{node{Machine: rigs.Boot(t), t: t}}
	p.Copy(build(t), "/usr/local/bin/muster")
	p.Copy(natsServer(t), "/usr/local/bin/natsserver")
	p.Copy(filepath.Join(rigs.Checkout(t), "deploy/muster.service"), "/etc/systemd/system/muster.service")
	p.write("/etc/muster/agent.yaml", "node: web01\nnats: {servers: ['nats://127.0.0.1:4222']}\n")
	p.sh(`ln -s muster /usr/local/bin/operator
systemctl daemon-reload
systemd-run --quiet --unit nats /usr/local/bin/natsserver 4222 /root/nats
until operator fleet init --yes; do sleep 0.1; done >/dev/null 2>&1
systemctl start muster`)

	return p
}

// configures assigns a configuration of the agent with a label, and what restarts the agent for it.
func (p packaged) configures(label, restart string) {
	p.t.Helper()
	p.push("self", `    - file: [{/etc/muster/agent.yaml: {owner: root, group: root, mode: '0600', content: "node: web01\nlabels: {label: `+label+`}\nnats: {servers: ['nats://127.0.0.1:4222']}\n"}}]
`+restart+`
    - file: [{/root/last: {content: '`+label+`', owner: root, group: root, mode: '0644', require: [file#/etc/muster/agent.yaml]}}]
`)
	p.await("the label", "operator fleet nodes --json | grep -q '\"label\": *\""+label+"\"' && [ $(cat /root/last) = "+label+" ]")
}

// TestAgentRestartsItself changes the configuration: the agent restarts once.
func TestAgentRestartsItself(t *testing.T) {
	p := newPackaged(t)
	log := func() string { return p.sh("journalctl -q -o cat -u muster") }
	restarts := func(label, want string) {
		t.Helper()
		// Another manifest is applied by the agent that runs then.
		p.push("site", "    - file: [{/root/site: {content: '"+label+"', owner: root, group: root, mode: '0644'}}]\n")
		p.await("the other manifest", "[ $(cat /root/site) = "+label+" ]")
		if got := p.sh("for what in 'agent started' 'shutting down'; do journalctl -q -o cat -u muster | grep -c \"$what\" || true; done"); got != want {
			t.Errorf("it started and stopped %q times, not %q:\n%s", got, want, log())
		}
		for _, r := range p.reports() {
			if r.Outcome == "failed" {
				t.Errorf("reported is %+v:\n%s", r, log())
			}
		}
	}
	p.configures("one", "    - service: [{muster: {ensure: running, subscribe: ['file#/etc/muster/agent.yaml']}}]")
	restarts("one", "2\n1")
	refreshed := 0
	for _, r := range p.reports() {
		if r.Kind == "transaction" && r.Data.Name == "muster" && r.Outcome == "refreshed" {
			refreshed++
		}
		if r.Outcome == "notrun" {
			t.Errorf("not run was %+v", r)
		}
	}
	if refreshed != 1 {
		t.Errorf("it was refreshed %d times: %+v", refreshed, p.reports())
	}
	// By commands that wait for the agent, which waits for them.
	p.configures("two", "    - exec: [{systemctl restart muster: {refresh_only: true, subscribe: ['file#/etc/muster/agent.yaml']}}]")
	restarts("two", "3\n2")
	p.configures("three", "    - exec: [{\"sh -c 'systemctl --system restart muster.service; touch /root/after'\": {refresh_only: true, subscribe: ['file#/etc/muster/agent.yaml']}}]")
	p.sh("ls /root/after")
	restarts("three", "4\n3")
	// Stopped, it reports that, and is gone.
	p.push("self", "    - service: [{muster: {ensure: stopped}}]\n    - file: [{/root/last: {content: gone, owner: root, group: root, mode: '0644'}}]\n")
	p.await("the stop", "[ $(systemctl show -P ActiveState muster) = inactive ]")
	if got := p.sh("cat /root/last; operator fleet reports --no-follow --since 1h --json | tail -n 1"); !strings.HasPrefix(got, "gone") || !strings.Contains(got, "stopped") {
		t.Errorf("after the stop: %s\n%s", got, log())
	}
}

// TestServicesByHand has administrators restart and stop services of the agent.
func TestServicesByHand(t *testing.T) {
	p := newPackaged(t)
	p.sh(`cd /etc/systemd/system
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\nAlias=nick.service\n' > real.service
printf '[Service]\nExecStart=/bin/sleep infinity\nExecStop=/bin/sleep 8\nSuccessExitStatus=143\n' > slow.service
systemctl daemon-reload; systemctl -q enable real`)
	p.push("services", "    - service: [{nick: {ensure: running, enable: true}}, {slow: {ensure: running}}]\n")
	p.await("the services", "systemctl is-active --quiet real && systemctl is-active --quiet slow && operator fleet reports --no-follow --since 1h --kind run --json | grep -q node.web01.services")
	count := func(name string) (changed int) {
		t.Helper()
		for _, r := range p.reports() {
			if r.Kind == "transaction" && r.Data.Name == name && r.Outcome == "changed" {
				changed++
			}
			if r.Outcome == "failed" || r.Outcome == "flapping" {
				t.Errorf("reported is %+v:\n%s", r, p.sh("journalctl -q -o cat -u muster"))
			}
		}
		return changed
	}
	if nick, slow := count("nick"), count("slow"); nick != 1 || slow != 1 {
		t.Errorf("they were changed %d and %d times: %+v", nick, slow, p.reports())
	}
	// Named by an alias.
	p.sh("systemctl stop real")
	p.await("the service", "systemctl is-active --quiet real")
	// What systemd restarts is no drift, however long it takes.
	p.sh("systemctl restart slow")
	for range 5 {
		p.sh("systemctl restart real")
	}
	// A stopped service starts again after it has stopped.
	p.sh("systemctl stop slow")
	p.await("the service", "systemctl is-active --quiet slow")
	p.await("the report", "[ $(operator fleet reports --no-follow --since 1h --kind transaction --outcome changed --json | grep -c '\"slow\"') = 2 ]")
	if nick, slow := count("nick"), count("slow"); nick != 2 || slow != 2 {
		t.Errorf("they were changed %d and %d times:\n%s", nick, slow, p.sh("journalctl -q -o cat -u muster"))
	}
}
