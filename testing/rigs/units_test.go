//go:build system

package rigs_test

import (
	"strings"
	"testing"
)

// unitFiles are manifests of unit files, without a service that would make systemd read them.
var unitFiles = map[string]struct {
	manifest string
	reloads  int
}{
	"a timer": {`    - file: [{/etc/systemd/system/job.timer: {content: "[Timer]\nOnCalendar=VALUE\n", owner: root, group: root, mode: "0644"}}]`, 1},
	"two files and a drop-in": {`    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/systemd/system/job.service: {content: "[Service]\nExecStart=/bin/echo VALUE\n"}
        - /run/systemd/system/job.timer: {content: "[Timer]\nOnCalendar=VALUE\n"}
        - /etc/systemd/system/job.service.d: {ensure: directory, mode: "0755"}
        - /etc/systemd/system/job.service.d/10.conf: {content: "[Unit]\nDescription=VALUE\n"}`, 1},
	"a drop-in by a scaffold": {`    - scaffold: [{/etc/systemd/system/job.service.d: {source: /root/SOURCE}}]`, 1},
	"no unit file":            {`    - file: [{/etc/systemd/system/job.txt: {content: VALUE, owner: root, group: root, mode: "0644"}}]`, 0},
	"with its service": {`    - file: [{/etc/systemd/system/job.service: {content: "[Unit]\nDescription=VALUE\n[Service]\nExecStart=/bin/sleep infinity\n", owner: root, group: root, mode: "0644"}}]
    - service: [{job: {subscribe: [file#/etc/systemd/system/job.service]}}]`, 1},
}

// TestUnitFilesAreRead writes unit files, changes them and removes them: systemd reads them once in
// each run that changes something, and never in others.
func TestUnitFilesAreRead(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	reloads := func() int { return count(n.calls(), "daemon-reload") }
	for name, c := range unitFiles {
		t.Run(name, func(t *testing.T) {
			n.sh("for v in daily weekly; do mkdir -p /root/$v; printf '[Unit]\nDescription=%s\n' $v > /root/$v/20.conf; done")
			for _, value := range []string{"daily", "weekly"} {
				n.write("/root/units.yaml", "muster:\n  resources:\n"+strings.NewReplacer("VALUE", value, "SOURCE", value).Replace(c.manifest)+"\n")
				n.calls()
				says := false
				for _, tx := range apply(t, n.Machine, "--noop", "/root/units.yaml") {
					says = says || strings.Contains(tx.NoopMessage, "daemon-reload")
				}
				if got := reloads(); got != 0 || says != (c.reloads > 0) {
					t.Errorf("%s, noop: %d reloads, and it predicts one: %t", value, got, says)
				}
				for i, want := range []int{c.reloads, 0} {
					apply(t, n.Machine, "/root/units.yaml")
					if got := reloads(); got != want {
						t.Errorf("%s, run %d: %d reloads, not %d", value, i+1, got, want)
					}
				}
				if got := n.sh("/usr/bin/systemctl show -p NeedDaemonReload --value job.timer job.service"); strings.Contains(got, "yes") {
					t.Errorf("%s: systemd needs a reload: %q", value, got)
				}
			}
			n.write("/root/units.yaml", "muster:\n  resources:\n    - file:\n        - /etc/systemd/system/job.service: {ensure: absent}\n        - /etc/systemd/system/job.timer: {ensure: absent}\n")
			n.sh("/usr/bin/systemctl stop job.service || true")
			apply(t, n.Machine, "/root/units.yaml")
			if got := n.sh("/usr/bin/systemctl show -p LoadState --value job.service"); name == "with its service" && got != "not-found" {
				t.Errorf("after its file was removed the unit is %s", got)
			}
			n.sh("rm -rf /etc/systemd/system/job* /run/systemd/system/job*; /usr/bin/systemctl daemon-reload")
			n.calls()
		})
	}
}

// TestUnitFilesAreReadAfterAKill kills muster after it wrote a unit file: the next run makes systemd
// read it, and no later run does.
func TestUnitFilesAreReadAfterAKill(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	n.write("/root/units.yaml", `muster:
  resources:
    - file: [{/etc/systemd/system/job.timer: {content: "[Timer]\nOnCalendar=daily\n", owner: root, group: root, mode: "0644"}}]
    - exec: [{/bin/sh -c 'kill -9 $(pidof muster)': {creates: /root/killed, require: [file#/etc/systemd/system/job.timer]}}]
`)
	if r := n.Run("muster", "apply", "/root/units.yaml"); r.Code == 0 {
		t.Fatalf("muster was not killed: %s%s", r.Stdout, r.Stderr)
	}
	n.write("/root/killed", "")
	for i, want := range []int{1, 0} {
		n.calls()
		apply(t, n.Machine, "/root/units.yaml")
		if got := count(n.calls(), "daemon-reload"); got != want {
			t.Errorf("run %d: %d reloads, not %d", i+1, got, want)
		}
	}
}
