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

// TestUnitFilesAreReadBeforeACommand changes the file of a running unit: the command that restarts the unit starts the new
// program.
func TestUnitFilesAreReadBeforeACommand(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	const manifest = `muster:
  resources:
    - file: [{/etc/systemd/system/job.service: {content: "[Service]\nExecStart=/bin/sleep SECONDS\n", owner: root, group: root, mode: "0644"}}]
    - exec: [{/usr/bin/systemctl restart job: {refresh_only: true, subscribe: [file#/etc/systemd/system/job.service]}}]
`
	for i, seconds := range []string{"1001", "1002", "1002"} {
		n.write("/root/units.yaml", strings.Replace(manifest, "SECONDS", seconds, 1))
		n.calls()
		apply(t, n.Machine, "/root/units.yaml")
		if got, want := count(n.calls(), "daemon-reload"), []int{1, 1, 0}[i]; got != want {
			t.Errorf("run %d: %d reloads, not %d", i+1, got, want)
		}
		if got := n.sh("tr '\\0' ' ' < /proc/$(/usr/bin/systemctl show -p MainPID --value job)/cmdline"); !strings.Contains(got, seconds) {
			t.Errorf("run %d: the unit runs %q", i+1, got)
		}
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
	n.calls()
	for range 2 {
		if r := n.Run("muster", "apply", "--noop", "/root/units.yaml"); r.Code != 0 || !strings.Contains(r.Stderr, "would reload its unit files") {
			t.Errorf("noop does not predict the reload: exit code %d\n%s", r.Code, r.Stderr)
		}
	}
	if got := count(n.calls(), "daemon-reload"); got != 0 {
		t.Errorf("noop: %d reloads", got)
	}
	for i, want := range []int{1, 0} {
		n.calls()
		apply(t, n.Machine, "/root/units.yaml")
		if got := count(n.calls(), "daemon-reload"); got != want {
			t.Errorf("run %d: %d reloads, not %d", i+1, got, want)
		}
	}
}

// TestUnitFilesAreReadAfterAKillAroundARun has a command of a run apply another manifest before muster
// is killed: the record of the outer run stays.
func TestUnitFilesAreReadAfterAKillAroundARun(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	const timer = `    - file: [{/etc/systemd/system/NAME.timer: {content: "[Timer]\nOnCalendar=daily\n", owner: root, group: root, mode: "0644"}}]` + "\n"
	n.write("/root/inner.yaml", "muster:\n  resources:\n"+strings.Replace(timer, "NAME", "inner", 1))
	n.write("/root/units.yaml", "muster:\n  resources:\n"+strings.Replace(timer, "NAME", "job", 1)+`    - exec:
        - /usr/local/bin/muster apply /root/inner.yaml: {creates: /root/killed}
        - /bin/sh -c 'touch /root/killed; kill -9 $(pidof muster)': {creates: /root/killed}
`)
	if r := n.Run("muster", "apply", "/root/units.yaml"); r.Code == 0 {
		t.Fatalf("muster was not killed: %s%s", r.Stdout, r.Stderr)
	}
	// The outer run reloads before the command, and the run within at its end.
	if got := count(n.calls(), "daemon-reload"); got != 2 {
		t.Errorf("%d reloads before the kill, not 2", got)
	}
	for i, want := range []int{1, 0} {
		apply(t, n.Machine, "/root/units.yaml")
		if got := count(n.calls(), "daemon-reload"); got != want {
			t.Errorf("run %d: %d reloads, not %d", i+1, got, want)
		}
	}
}

// TestLinkedUnitFilesAreRead changes files that are unit files and drop-ins only by links to them.
func TestLinkedUnitFilesAreRead(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	n.sh(`mkdir -p /opt/v1/d /etc/systemd/system/app.service.d; ln -s v1 /opt/app; printf '[Service]\nExecStart=/bin/sleep infinity\n' > /opt/app/app.service; touch /opt/app/own.conf
/usr/bin/systemctl link /opt/app/app.service; ln -s /opt/app/d /etc/systemd/system/job-.service.d; ln -s /opt/app/own.conf /etc/systemd/system/app.service.d/10.conf
printf '[Service]\nExecStart=/bin/sleep infinity\n' > /etc/systemd/system/job-a.service; /usr/bin/systemctl daemon-reload; /usr/bin/systemctl start app job-a`)
	for path, reloads := range map[string]int{"/opt/app/app.service": 1, "/opt/v1/app.service": 1, "/opt/app/d/10.conf": 1, "/opt/app/own.conf": 1, "/opt/app/other.conf": 0, "/opt/app/other.service": 0} {
		for _, value := range []string{"a", "b"} {
			n.write("/root/units.yaml", "muster:\n  resources:\n    - file: [{"+path+": {content: \"[Unit]\\nDescription="+value+"\\n[Service]\\nExecStart=\\nExecStart=/bin/sleep infinity\\n\", owner: root, group: root, mode: '0644'}}]\n")
			n.calls()
			would := apply(t, n.Machine, "--noop", "/root/units.yaml")
			if says := strings.Contains(would[0].NoopMessage, "daemon-reload"); says != (reloads > 0) {
				t.Errorf("%s, %s, noop: %q", path, value, would[0].NoopMessage)
			}
			for i, want := range []int{reloads, 0} {
				apply(t, n.Machine, "/root/units.yaml")
				if got := count(n.calls(), "daemon-reload"); got != want {
					t.Errorf("%s, %s, run %d: %d reloads, not %d", path, value, i+1, got, want)
				}
			}
			if got := n.sh("/usr/bin/systemctl show -p NeedDaemonReload --value app.service job-a.service"); strings.Contains(got, "yes") {
				t.Errorf("%s, %s: systemd needs a reload: %q", path, value, got)
			}
		}
	}
}

// TestScaffoldsRemoveUnitFiles predicts the reload after the removal of unit files by a scaffold, by
// ensure: absent and by purge.
func TestScaffoldsRemoveUnitFiles(t *testing.T) {
	n := newNode(t)
	n.sh(noBus)
	n.sh("mkdir -p /root/all/job.service.d /root/none; printf '[Unit]\nDescription=a\n' > /root/all/job.service.d/20.conf; echo text > /root/none/job.txt")
	for what, c := range map[string]struct {
		removal string
		reloads int
	}{
		"absent":                    {"{/etc/systemd/system: {ensure: absent, source: /root/all}}", 1},
		"purge":                     {"{/etc/systemd/system/job.service.d: {source: /root/none, purge: true}}", 1},
		"absent, of another folder": {"{/etc/systemd/system: {ensure: absent, source: /root/none}}", 0},
	} {
		n.sh("mkdir -p /etc/systemd/system/job.service.d; cp /root/all/job.service.d/20.conf /etc/systemd/system/job.service.d; cp /root/none/job.txt /etc/systemd/system; /usr/bin/systemctl daemon-reload")
		n.write("/root/units.yaml", "muster:\n  resources:\n    - scaffold: ["+c.removal+"]\n")
		n.calls()
		would := apply(t, n.Machine, "--noop", "/root/units.yaml")
		if says := strings.Contains(would[0].NoopMessage, "daemon-reload"); says != (c.reloads > 0) {
			t.Errorf("%s, noop: %q", what, would[0].NoopMessage)
		}
		for i, want := range []int{c.reloads, 0} {
			apply(t, n.Machine, "/root/units.yaml")
			if got := count(n.calls(), "daemon-reload"); got != want {
				t.Errorf("%s, run %d: %d reloads, not %d", what, i+1, got, want)
			}
		}
	}
}
