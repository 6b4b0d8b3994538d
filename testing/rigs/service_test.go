//go:build system

package rigs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
)

// daemon is a package with a program that reads its configuration at start and shows it.
const daemon = `set -e
d=$(mktemp -d); chmod 755 $d; mkdir -p $d/DEBIAN $d/usr/bin /srv/repo
printf 'Package: greeter\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@example.net>\nDescription: a test\n' > $d/DEBIAN/control
printf '#!/bin/sh\n. /etc/greeter.conf\necho "$GREETING from $PLACE" > /run/greeter\nexec sleep infinity\n' > $d/usr/bin/greeter
chmod 755 $d/usr/bin/greeter
dpkg-deb --root-owner-group -Znone -b $d /srv/repo/greeter.deb
cd /srv/repo
{ dpkg-deb -f greeter.deb; printf 'Filename: ./greeter.deb\nSize: %s\nSHA256: %s\n' $(stat -c %s greeter.deb) $(sha256sum greeter.deb | cut -d' ' -f1); } > Packages
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
apt-get update
# What calls systemctl is written down.
printf '#!/bin/sh\necho "$*" >> /root/calls\nexec /usr/bin/systemctl "$@"\n' > /usr/local/sbin/systemctl
chmod 755 /usr/local/sbin/systemctl
`

// manifest manages all of the daemon. The data come from outside.
const manifest = `
data: {greeting: hello, place: home}
muster:
  resources:
    - package:
        - greeter: {ensure: present}
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/greeter.conf:
            content: "GREETING=${ lookup('data.greeting') }\n"
        - /etc/systemd/system/greeter.service:
            content: |
              [Unit]
              Description=Greets from {{ lookup('data.place') }}
              [Service]
              Type=exec
              Environment=PLACE={{ lookup('data.place') }}
              ExecStart=/usr/bin/greeter
              ExecStartPost=/bin/sh -c 'until [ -s /run/greeter ]; do :; done'
              ExecStopPost=/bin/rm -f /run/greeter
              [Install]
              WantedBy=multi-user.target
    - service:
        - greeter:
            enable: true
            subscribe: [file#/etc/greeter.conf, file#/etc/systemd/system/greeter.service]
`

// removal is the manifest that takes it all away.
const removal = `
muster:
  resources:
    - service:
        - greeter: {ensure: stopped, enable: false}
    - file:
        - /etc/systemd/system/greeter.service: {ensure: absent}
        - /etc/greeter.conf: {ensure: absent}
    - package:
        - greeter: {ensure: absent}
`

// node is a booted machine with muster and the daemon's repository.
type node struct {
	*rigs.Machine
	t testing.TB
}

func newNode(t *testing.T) node {
	t.Helper()
	n := node{Machine: rigs.Boot(t), t: t}
	n.Copy(build(t), "/usr/local/bin/muster")
	n.write("/root/greeter.yaml", manifest)
	n.write("/root/removal.yaml", removal)
	n.sh(daemon)

	return n
}

func (n node) write(path, text string) {
	n.t.Helper()
	file := filepath.Join(n.t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.Copy(file, path)
}

func (n node) sh(script string) string {
	n.t.Helper()
	r := n.Run("sh", "-c", script)
	if r.Code != 0 {
		n.t.Fatalf("%s: exit code %d\n%s%s", script, r.Code, r.Stdout, r.Stderr)
	}

	return strings.TrimSpace(r.Stdout)
}

// calls returns the systemctl calls since the last call, without their units.
func (n node) calls() []string {
	n.t.Helper()
	var out []string
	for line := range strings.Lines(n.sh("touch /root/calls; cat /root/calls; rm /root/calls")) {
		out = append(out, strings.Fields(line)[0])
	}

	return out
}

// service is the result of the service.
func service(t *testing.T, txs []model.Transaction) model.Transaction {
	t.Helper()
	i := slices.IndexFunc(txs, func(tx model.Transaction) bool { return tx.Ref().String() == "service#greeter" })
	if i < 0 {
		t.Fatalf("nothing came of the service: %+v", txs)
	}

	return txs[i]
}

// changed are the resources that were changed.
func changed(txs []model.Transaction) []string {
	var out []string
	for _, tx := range txs {
		if tx.Changed {
			out = append(out, tx.Ref().String())
		}
	}

	return out
}

// TestServiceOnARealMachine has a package, its configuration, its unit and its
// service applied, changed, drifted and removed. systemd refuses D-Bus, so that
// each observation is seen as a call of systemctl.
func TestServiceOnARealMachine(t *testing.T) {
	const pkg, conf, unit, svc = "package#greeter", "file#/etc/greeter.conf", "file#/etc/systemd/system/greeter.service", "service#greeter"
	n := newNode(t)
	n.sh(noBus)
	n.calls()
	expect := func(greeting string, wantCalls, wantChanged []string, args ...string) model.Transaction {
		t.Helper()
		txs := apply(t, n.Machine, args...)
		if got := changed(txs); !slices.Equal(got, wantChanged) {
			t.Errorf("changed are %q, not %q", got, wantChanged)
		}
		if got := n.calls(); !slices.Equal(got, wantCalls) {
			t.Errorf("systemctl was called for %q, not %q", got, wantCalls)
		}
		if got := n.sh("systemctl is-active greeter; systemctl is-enabled greeter; cat /run/greeter"); got != "active\nenabled\n"+greeting {
			t.Errorf("the service is %q", got)
		}
		n.calls()
		return service(t, txs)
	}

	before := n.Changes()
	would := service(t, apply(t, n.Machine, "--noop", "/root/greeter.yaml"))
	if !would.Skipped || would.NoopMessage != "unknown until file#/etc/systemd/system/greeter.service is applied" {
		t.Errorf("noop says of the service %+v", would)
	}
	unchanged(t, before, n.Changes())
	if got := n.calls(); !slices.Equal(got, []string{"show"}) {
		t.Errorf("noop called systemctl for %q", got)
	}

	all := []string{pkg, conf, unit, svc}
	tx := expect("hello from home", []string{"show", "show", "daemon-reload", "start", "show", "enable", "show"}, all, "/root/greeter.yaml")
	if tx.FinalEnsure != "running" || len(tx.Changes) != 2 || tx.Changes[0].Action != "start" {
		t.Errorf("the first run: %+v", tx)
	}
	expect("hello from home", []string{"show"}, nil, "/root/greeter.yaml")

	n.byHand()

	// Its configuration changes, and then its unit.
	n.sh("sed -i 's/greeting: hello/greeting: goodbye/' /root/greeter.yaml")
	tx = expect("goodbye from home", []string{"show", "show", "daemon-reload", "restart", "show", "show"}, []string{conf, svc}, "/root/greeter.yaml")
	if !tx.Refreshed {
		t.Errorf("after its configuration changed: %+v", tx)
	}
	n.sh("sed -i 's/place: home/place: work/' /root/greeter.yaml")
	before = n.Changes()
	would = service(t, apply(t, n.Machine, "--noop", "/root/greeter.yaml"))
	if would.NoopMessage != "Would have restarted, and possibly more after file#/etc/systemd/system/greeter.service is applied" {
		t.Errorf("noop says of the service %+v", would)
	}
	unchanged(t, before, n.Changes())
	n.calls()
	expect("goodbye from work", []string{"show", "show", "daemon-reload", "show", "restart", "show", "show"}, []string{unit, svc}, "/root/greeter.yaml")

	// A user stops it, disables it, and changes files.
	n.sh("systemctl stop greeter; rm /etc/systemd/system/multi-user.target.wants/greeter.service; echo GREETING=boo > /etc/greeter.conf")
	n.calls()
	tx = expect("goodbye from work", []string{"show", "is-enabled", "show", "is-enabled", "daemon-reload", "start", "show", "enable", "show"}, []string{conf, svc}, "/root/greeter.yaml")
	if !tx.Refreshed {
		t.Errorf("after it was stopped: %+v", tx)
	}
	// A user edits the unit without a daemon-reload.
	n.sh("sed -i s/PLACE=work/PLACE=nowhere/ /etc/systemd/system/greeter.service")
	apply(t, n.Machine, "--noop", "/root/greeter.yaml")
	if got := n.calls(); !slices.Equal(got, []string{"show"}) {
		t.Errorf("noop called systemctl for %q", got)
	}
	expect("goodbye from work", []string{"show", "daemon-reload", "show", "show", "daemon-reload", "show", "restart", "show", "show"}, []string{unit, svc}, "/root/greeter.yaml")

	txs := apply(t, n.Machine, "/root/removal.yaml")
	if got := changed(txs); !slices.Equal(got, []string{svc, unit, conf, pkg}) {
		t.Errorf("the removal changed %q", got)
	}
	if got := n.sh("systemctl daemon-reload; systemctl is-active greeter || true; ls /etc/greeter.conf /etc/systemd/system/*greeter* /etc/systemd/system/*/greeter* /usr/bin/greeter /run/greeter 2>/dev/null || true; pgrep -x greeter || true"); got != "inactive" {
		t.Errorf("left over is %q", got)
	}
	n.calls()
	for _, args := range [][]string{{"/root/removal.yaml"}, {"--noop", "/root/removal.yaml"}} {
		for _, tx := range apply(t, n.Machine, args...) {
			if tx.Outcome() != model.OutcomeStable {
				t.Errorf("what is not there is removed again: %+v", tx)
			}
		}
		if got := n.calls(); !slices.Equal(got, []string{"show"}) {
			t.Errorf("systemctl was called for %q", got)
		}
	}
	// What a package of the run would bring is not known.
	n.write("/root/comes.yaml", "muster:\n  resources:\n    - package: [{greeter: {}}]\n    - service: [{greeter: {ensure: stopped, enable: false}}]\n")
	if would := service(t, apply(t, n.Machine, "--noop", "/root/comes.yaml")); would.NoopMessage != "unknown until package#greeter is applied" {
		t.Errorf("noop says of the service %+v", would)
	}
}

// byHand asks about the service and changes it without a manifest, by both ways
// there are, and leaves it as it was.
func (n node) byHand() {
	n.t.Helper()
	var state struct {
		Ensure   string
		Metadata map[string]any
	}
	r := n.Run("muster", "status", "service", "greeter", "--json")
	if err := json.Unmarshal([]byte(r.Stdout), &state); err != nil {
		n.t.Fatalf("%v: %+v", err, r)
	}
	want := map[string]any{"name": "greeter", "provider": "systemd", "enabled": true, "running": true, "active_state": "active", "enabled_state": "enabled"}
	if state.Ensure != "running" || !reflect.DeepEqual(state.Metadata, want) {
		n.t.Errorf("the state is %+v", state)
	}
	if r := n.Run("muster", "ensure", "service", "greeter", "--ensure", "stopped", "--no-enable"); r.Code != 0 {
		n.t.Errorf("ensure: %+v", r)
	}
	if got := n.sh("systemctl is-active greeter; systemctl is-enabled greeter; true"); got != "inactive\ndisabled" {
		n.t.Errorf("the service is %q", got)
	}
	const request = `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "service", "properties": {"name": "greeter", "ensure": "running", "enable": true}}`
	var response struct{ State model.Transaction }
	if err := json.Unmarshal([]byte(n.sh("echo '"+request+"' | muster ensure api pipe")), &response); err != nil {
		n.t.Fatal(err)
	}
	if tx := response.State; !tx.Changed || tx.FinalEnsure != "running" || len(tx.Changes) != 2 {
		n.t.Errorf("the transaction is %+v", tx)
	}
	n.calls()
}

// unchanged checks that only systemd's log changes.
func unchanged(t *testing.T, before, after hosttest.Tree) {
	t.Helper()
	for _, line := range hosttest.SnapshotDiff(before, after) {
		if !strings.HasPrefix(line, "var/log/journal/") && !strings.HasPrefix(line, "root/calls") && !strings.HasPrefix(line, "root: time") {
			t.Errorf("the machine was changed: %s", line)
		}
	}
}

// TestServiceThatHangsAmongOthers has its own time and no more, its log in its
// error, and starts at boot all the same.
func TestServiceThatHangsAmongOthers(t *testing.T) {
	n := newNode(t)
	n.sh(`cd /usr/lib/systemd/system
printf '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' > fine.service
printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo waiting for the disk; exec sleep infinity"\n[Install]\nWantedBy=multi-user.target\n' > hangs.service
systemctl daemon-reload`)
	n.write("/root/group.yaml", "muster:\n  resources:\n    - service:\n        - defaults: {enable: true, timeout: 2s}\n        - fine: {}\n        - hangs: {}\n")
	n.calls()
	r := n.Run("muster", "apply", "/root/group.yaml")
	if r.Code != 1 || !strings.Contains(r.Stderr, "timed out after 2s") || !strings.Contains(r.Stderr, "waiting for the disk") {
		t.Errorf("%+v", r)
	}
	if got, want := n.calls(), []string{"daemon-reload", "start", "enable"}; !slices.Equal(got, want) {
		t.Errorf("systemctl was called for %q, not %q", got, want)
	}
	if got := n.sh("systemctl is-active fine hangs; systemctl is-enabled fine hangs; systemctl stop hangs"); got != "active\nactivating\nenabled\nenabled" {
		t.Errorf("they are %q", got)
	}
	// A stopped service was not refreshed.
	n.write("/root/stop.yaml", "muster:\n  resources:\n    - file:\n        - /root/x: {content: x, owner: root, group: root, mode: '0644'}\n    - service:\n        - fine: {ensure: stopped, subscribe: [file#/root/x]}\n")
	for _, tx := range apply(t, n.Machine, "/root/stop.yaml") {
		if tx.Refreshed || !tx.Changed {
			t.Errorf("%+v", tx)
		}
	}
}

// TestRefreshOfAService has one refresh a run, and none where the script of a
// package restarted the service after the last change. The script waits, because muster regards a start
// within 20 ms of the change as simultaneous, and refreshes the service.
func TestRefreshOfAService(t *testing.T) {
	n := newNode(t)
	n.sh(`set -e
d=$(mktemp -d); chmod 755 $d; mkdir -p $d/DEBIAN
printf 'Package: restarts\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@example.net>\nDescription: a test\n' > $d/DEBIAN/control
printf '#!/bin/sh\nsleep 0.1\nexec /usr/bin/systemctl restart web\n' > $d/DEBIAN/postinst
chmod 755 $d/DEBIAN/postinst
cd /srv/repo
dpkg-deb --root-owner-group -Znone -b $d /srv/repo/restarts.deb
{ echo; dpkg-deb -f restarts.deb; printf 'Filename: ./restarts.deb\nSize: %s\nSHA256: %s\n' $(stat -c %s restarts.deb) $(sha256sum restarts.deb | cut -d' ' -f1); } >> Packages
apt-get update
printf '[Service]\nType=exec\nExecStartPre=/bin/sh -c "echo start >> /root/did"\nExecReload=/bin/sh -c "echo reload >> /root/did"\nExecStart=/bin/sleep infinity\n' > /etc/systemd/system/web.service
systemctl daemon-reload; systemctl start web`)
	did := func() string { return n.sh("cat /root/did; : > /root/did") }
	did()
	const files = "    - file:\n        - defaults: {owner: root, group: root, mode: '0644'}\n        - /root/a: {content: '${ Data.v }'}\n        - /root/b: {content: '${ Data.v }'}\n"
	const pkg = "    - package: [{restarts: {}}]\n"
	run := func(v, resources, service string) model.Transaction {
		t.Helper()
		n.write("/root/m.yaml", "data: {v: "+v+"}\nmuster:\n  resources:\n"+resources+"    - service: [{web: "+service+"}]\n")
		txs := apply(t, n.Machine, "/root/m.yaml")
		return txs[len(txs)-1]
	}
	if tx := run("one", files, "{refresh: reload, subscribe: [file#/root/a, file#/root/b]}"); !tx.Refreshed || did() != "reload" {
		t.Errorf("two files: %+v", tx)
	}
	if tx := run("two", files+pkg, "{subscribe: [file#/root/a, package#restarts]}"); tx.Refreshed || tx.Outcome() != model.OutcomeStable {
		t.Errorf("the script of the package came last: %+v", tx)
	} else if got := did(); got != "start" {
		t.Errorf("the script of the package came last: %q", got)
	}
	if tx := run("two", files+pkg, "{subscribe: [file#/root/a, package#restarts]}"); tx.Refreshed || did() != "" {
		t.Errorf("the refresh is still pending: %+v", tx)
	}
	n.sh("apt-get remove -y restarts")
	if tx := run("three", pkg+files, "{subscribe: [file#/root/a, package#restarts]}"); !tx.Refreshed || did() != "start\nstart" {
		t.Errorf("a file came last: %+v", tx)
	}
}

// TestTimerComesAfterItsService orders a timer after its service, which the manifest declares later.
func TestTimerComesAfterItsService(t *testing.T) {
	n := newNode(t)
	n.write("/root/timer.yaml", `
muster:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/systemd/system/backup.timer: {content: "[Timer]\nOnCalendar=hourly\nPersistent=true\n[Install]\nWantedBy=timers.target\n"}
    - service:
        - backup.timer: {enable: true}
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/systemd/system/backup.service: {content: "[Service]\nType=oneshot\nExecStart=/bin/true\n"}
`)
	txs := apply(t, n.Machine, "/root/timer.yaml")
	if got := changed(txs); !slices.Equal(got, []string{"file#/etc/systemd/system/backup.timer", "file#/etc/systemd/system/backup.service", "service#backup.timer"}) {
		t.Errorf("changed are %q", got)
	}
	if got := n.sh("systemctl is-active backup.timer; systemctl is-enabled backup.timer"); got != "active\nenabled" {
		t.Errorf("the timer is %q", got)
	}
}

// TestServicesOfTheDocumentation runs what the page of the type shows.
func TestServicesOfTheDocumentation(t *testing.T) {
	m := rigs.Boot(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	runPage(t, m, "service", 2)
}
