//go:build system

package rigs_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
)

// unitsOf returns a manifest of services, each a name and its properties.
func unitsOf(entries ...string) string {
	return "muster:\n  resources:\n    - service:\n        - " + strings.Join(entries, "\n        - ") + "\n"
}

// applies applies a manifest and checks the outcome of its only resource, of noop and of a second run.
func (n node) applies(t *testing.T, what, manifest string, want model.Outcome, message string) {
	t.Helper()
	n.write("/root/units.yaml", manifest)
	would := apply(t, n.Machine, "--noop", "/root/units.yaml")
	if message != would[0].NoopMessage {
		t.Errorf("%s, noop: %q, not %q", what, would[0].NoopMessage, message)
	}
	for _, want := range []model.Outcome{want, model.OutcomeStable} {
		if got := apply(t, n.Machine, "/root/units.yaml"); got[0].Outcome() != want {
			t.Errorf("%s: %s, not %s: %+v", what, got[0].Outcome(), want, got[0])
		}
	}
}

// refuses applies a manifest that is refused, in noop too, with a text.
func (n node) refuses(what, manifest, says string) {
	n.t.Helper()
	n.write("/root/units.yaml", manifest)
	for _, args := range [][]string{{"--noop"}, nil} {
		if r := n.Run(append(append([]string{"muster", "apply"}, args...), "/root/units.yaml")...); r.Code == 0 || !strings.Contains(r.Stderr, says) {
			n.t.Errorf("%s, %q: exit code %d, without %q\n%s", what, args, r.Code, says, r.Stderr)
		}
	}
}

func TestEnableComparesLinks(t *testing.T) {
	n := newNode(t)
	const enabled = "Would have enabled again, because its links differ from its [Install] section"
	unit := func(install string) {
		n.sh("printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\n" + install + "' > /etc/systemd/system/job.service; systemctl daemon-reload")
	}
	links := func(want string) {
		t.Helper()
		if got := n.sh("cd /etc/systemd/system; find . -type l -name 'job*' -o -type l -lname '*job*' | sort | tr '\\n' ' '"); got != want {
			t.Errorf("the links are %q, not %q", got, want)
		}
	}
	manifest := unitsOf("job: {enable: true}")
	unit("WantedBy=multi-user.target\\n")
	n.applies(t, "not enabled", manifest, model.OutcomeChanged, "Would have started. Would have enabled")
	unit("WantedBy=graphical.target\\n")
	n.applies(t, "another target", manifest, model.OutcomeChanged, enabled)
	links("./graphical.target.wants/job.service")
	unit("WantedBy=graphical.target multi-user.target\\nRequiredBy=timers.target\\nAlias=work.service %%N-too.service\\n")
	n.applies(t, "more links", manifest, model.OutcomeChanged, enabled)
	links("./graphical.target.wants/job.service ./job-too.service ./multi-user.target.wants/job.service ./timers.target.requires/job.service ./work.service")
	unit("WantedBy=graphical.target\\nWantedBy=\\nWantedBy=multi-user.target\\nAlias=work.service\\n")
	n.applies(t, "fewer links", manifest, model.OutcomeChanged, enabled)
	links("./multi-user.target.wants/job.service ./work.service")
	n.sh("systemctl add-wants basic.target job.service 2>/dev/null")
	n.applies(t, "by hand", manifest, model.OutcomeChanged, enabled)
	n.sh("mkdir -p /etc/systemd/system/job.service.d; printf '[Install]\\nWantedBy=basic.target\\n' > /etc/systemd/system/job.service.d/10.conf; systemctl daemon-reload")
	n.applies(t, "a drop-in", manifest, model.OutcomeChanged, enabled)
	links("./basic.target.wants/job.service ./multi-user.target.wants/job.service ./work.service")

	// A run that writes the file enables it again.
	n.sh("rm -r /etc/systemd/system/job.service.d")
	n.write("/root/file.yaml", "muster:\n  resources:\n    - file: [{/etc/systemd/system/job.service: {content: \"[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=rescue.target\\n\", owner: root, group: root, mode: '0644'}}]\n    - service: [{job: {enable: true}}]\n")
	apply(t, n.Machine, "/root/file.yaml")
	links("./rescue.target.wants/job.service")

	// An instance, and a linked unit.
	n.sh("printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > /etc/systemd/system/each@.service; systemctl daemon-reload; systemctl enable --now each@a 2>/dev/null; sed -i s/multi-user/basic/ /etc/systemd/system/each@.service; systemctl daemon-reload")
	n.applies(t, "an instance", unitsOf("each@a: {enable: true}"), model.OutcomeChanged, enabled)
	n.sh("mkdir -p /opt/app; printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > /opt/app/far.service; systemctl enable --now /opt/app/far.service 2>/dev/null; sed -i s/multi-user/basic/ /opt/app/far.service; systemctl daemon-reload")
	n.applies(t, "a linked unit", unitsOf("far: {enable: true}"), model.OutcomeChanged, enabled)
	if got := n.sh("systemctl is-enabled far; readlink /etc/systemd/system/far.service"); got != "enabled\n/opt/app/far.service" {
		t.Errorf("the linked unit is %q", got)
	}
}

func TestEscapedUnitNames(t *testing.T) {
	n := newNode(t)
	n.sh(`mkdir -p /srv/my-data; printf '[Mount]\nWhat=tmpfs\nWhere=/srv/my-data\nType=tmpfs\n[Install]\nWantedBy=multi-user.target\n' > '/etc/systemd/system/srv-my\x2ddata.mount'
printf '[Service]\nExecStart=/bin/sleep infinity\n' > /etc/systemd/system/each@.service; systemctl daemon-reload`)
	n.applies(t, "a mount", unitsOf(`srv-my\x2ddata.mount: {enable: true}`), model.OutcomeChanged, "Would have started. Would have enabled")
	if got := n.sh("findmnt -no FSTYPE /srv/my-data"); got != "tmpfs" {
		t.Errorf("mounted is %q", got)
	}
	n.applies(t, "stopped", unitsOf(`srv-my\x2ddata.mount: {ensure: stopped, enable: false}`), model.OutcomeChanged, "Would have stopped. Would have disabled")
	n.applies(t, "an instance", unitsOf(`each@a\x20b@c: {}`), model.OutcomeChanged, "Would have started")
	n.applies(t, "two", unitsOf(`each@1\x2f2: {}`, `each@3\x2f4: {}`), model.OutcomeChanged, "Would have started")
}

func TestTransientUnits(t *testing.T) {
	n := newNode(t)
	n.sh("systemd-run --unit=job sleep infinity; systemd-run --unit=other sleep infinity")
	n.applies(t, "stopped", unitsOf("job: {ensure: stopped}"), model.OutcomeChanged, "Would have stopped")
	n.applies(t, "together with another", unitsOf("job: {ensure: stopped}", "other: {ensure: stopped}"), model.OutcomeStable, "")
	n.sh("systemd-run --unit=job sleep infinity")
	n.applies(t, "again", unitsOf("job: {ensure: stopped}"), model.OutcomeChanged, "Would have stopped")
	n.refuses("it is to run", unitsOf("job: {ensure: running}"), "service not found")
	n.refuses("a name that never was", unitsOf("jobb: {ensure: stopped}"), "service not found")
}

func TestMaskingAUnitWithAFile(t *testing.T) {
	n := newNode(t)
	n.sh("printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > /etc/systemd/system/job.service; systemctl daemon-reload; systemctl enable --now job 2>/dev/null")
	masked := unitsOf("job: {ensure: stopped, enable: false, masked: true}")
	n.refuses("its file is in the way", masked, "job cannot be masked: its unit file is at /etc/systemd/system/job.service, where the mask must be: move the file to /usr/local/lib/systemd/system")
	if got := n.sh("systemctl is-active job; systemctl is-enabled job"); got != "active\nenabled" {
		t.Errorf("it is %q", got)
	}
	n.write("/root/both.yaml", "muster:\n  resources:\n    - file: [{/etc/systemd/system/job.service: {ensure: absent}}]\n    - service: [{job: {ensure: stopped, enable: false, masked: true, require: [file#/etc/systemd/system/job.service]}}]\n")
	if would := apply(t, n.Machine, "--noop", "/root/both.yaml"); would[1].NoopMessage != "Would have stopped. Would have disabled. Would have masked" {
		t.Errorf("with the removal of the file: %+v", would)
	}
	n.sh("mkdir -p /usr/local/lib/systemd/system; mv /etc/systemd/system/job.service /usr/local/lib/systemd/system; systemctl daemon-reload; systemctl reenable job 2>/dev/null")
	n.applies(t, "its file was moved", masked, model.OutcomeChanged, "Would have stopped. Would have disabled. Would have masked")
}

// TestMaskingAfterTheFileIsRemoved follows the remedies of a refused mask: in one manifest, which the
// second run finds stable, and by hand.
func TestMaskingAfterTheFileIsRemoved(t *testing.T) {
	n := newNode(t)
	const unit = "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n"
	const absent = "    - file: [{/etc/systemd/system/job.service: {ensure: absent}}]\n"
	start := "mkdir -p /usr/local/lib/systemd/system; rm -f /etc/systemd/system/job.service; printf '" + unit + "' > /etc/systemd/system/job.service; systemctl daemon-reload; systemctl enable --now job 2>/dev/null"
	twice := func(what, resources string, first ...model.Outcome) {
		t.Helper()
		n.sh(start)
		n.write("/root/units.yaml", "muster:\n  resources:\n"+resources)
		apply(t, n.Machine, "--noop", "/root/units.yaml")
		for i := range 2 {
			for k, tx := range apply(t, n.Machine, "/root/units.yaml") {
				want := model.OutcomeStable
				if i == 0 {
					want = first[k]
				}
				if tx.Outcome() != want {
					t.Errorf("%s, run %d: %s is %s, not %s", what, i+1, tx.Ref(), tx.Outcome(), want)
				}
			}
		}
		if got := n.sh("systemctl is-active job; systemctl is-enabled job; true"); got != "inactive\nmasked" {
			t.Errorf("%s: it is %q", what, got)
		}
	}
	twice("the file is removed", absent+"    - service: [{job: {ensure: stopped, masked: true}}]\n", model.OutcomeChanged, model.OutcomeChanged)
	twice("it is disabled too", absent+"    - service: [{job: {ensure: stopped, enable: false, masked: true}}]\n", model.OutcomeChanged, model.OutcomeChanged)
	twice("the file moves", "    - file: [{/usr/local/lib/systemd/system/job.service: {owner: root, group: root, mode: '0644', content: \""+unit+"\"}}]\n"+absent+
		"    - service: [{job: {ensure: stopped, masked: true}}]\n", model.OutcomeChanged, model.OutcomeChanged, model.OutcomeChanged)

	// Without the service, the mask is a file as any other.
	n.write("/root/units.yaml", "muster:\n  resources:\n"+absent)
	if got := apply(t, n.Machine, "/root/units.yaml"); got[0].Outcome() != model.OutcomeChanged {
		t.Errorf("the mask alone is %s", got[0].Outcome())
	}
	n.sh(start + "; rm /etc/systemd/system/job.service /usr/local/lib/systemd/system/job.service")
	n.applies(t, "stopped, systemd did not read the removal", unitsOf("job: {ensure: stopped}"), model.OutcomeChanged, "Would have stopped")
	n.sh(start + "; rm /etc/systemd/system/job.service; systemctl daemon-reload")
	n.applies(t, "stopped after the removal", unitsOf("job: {ensure: stopped}"), model.OutcomeChanged, "Would have stopped")
	n.refuses("it is to run", unitsOf("job: {}"), "service not found")
	n.sh(start + "; rm /etc/systemd/system/job.service")
	n.applies(t, "systemd did not read the removal", unitsOf("job: {ensure: stopped, masked: true}"), model.OutcomeChanged, "Would have stopped. Would have masked")
}

// TestInstallChangesInTheRun changes the [Install] section by a file of the same run: noop says that it
// does not know whether the service is enabled again.
func TestInstallChangesInTheRun(t *testing.T) {
	n := newNode(t)
	const path, more = "/etc/systemd/system/job.service", "/etc/systemd/system/job.service.d/10.conf"
	manifest := func(file, text, service string) {
		n.write("/root/units.yaml", "muster:\n  resources:\n    - file: [{"+file+": {content: \""+text+"\", owner: root, group: root, mode: '0644'}}]\n    - service: [{job: {enable: true, "+service+"}}]\n")
	}
	unit := func(target string) string {
		return "[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=" + target + "\\n"
	}
	expect := func(what, message string, real model.Outcome) {
		t.Helper()
		if would := apply(t, n.Machine, "--noop", "/root/units.yaml"); would[1].NoopMessage != message {
			t.Errorf("%s, noop: %q, not %q", what, would[1].NoopMessage, message)
		}
		for _, want := range []model.Outcome{real, model.OutcomeStable} {
			if got := apply(t, n.Machine, "/root/units.yaml"); got[1].Outcome() != want {
				t.Errorf("%s: %s, not %s: %+v", what, got[1].Outcome(), want, got[1])
			}
		}
	}
	n.sh("mkdir -p /etc/systemd/system/job.service.d")
	manifest(path, unit("multi-user.target"), "")
	expect("not enabled", "unknown until file#"+path+" is applied", model.OutcomeChanged)
	expect("nothing changes", "", model.OutcomeStable)
	manifest(path, unit("graphical.target"), "")
	expect("another target", "unknown until file#"+path+" is applied", model.OutcomeChanged)
	manifest(more, "[Install]\\nWantedBy=basic.target\\n", "")
	expect("a drop-in", "unknown until file#"+more+" is applied", model.OutcomeChanged)
	manifest(path, unit("rescue.target"), "subscribe: [file#"+path+"]")
	expect("with a restart", "Would have restarted, and possibly more after file#"+path+" is applied", model.OutcomeRefreshed)
	if got := n.sh("cd /etc/systemd/system; find . -name 'job.service' -type l | sort | tr '\\n' ' '"); got != "./basic.target.wants/job.service ./rescue.target.wants/job.service" {
		t.Errorf("the links are %q", got)
	}
	n.sh("printf '[Service]\\nExecStart=/bin/sleep infinity\\n' > " + path + "; rm -r /etc/systemd/system/job.service.d; systemctl daemon-reload")
	removed := "Would have removed the links that enable it, because its unit file has no [Install] section anymore"
	n.applies(t, "no section anymore", unitsOf("job: {enable: true}"), model.OutcomeChanged, removed)
	if got := n.sh("systemctl is-enabled job"); got != "static" {
		t.Errorf("without a section it is %q", got)
	}
	// An administrator can start a unit without a section at boot by a link.
	n.sh("systemctl add-wants timers.target job.service 2>/dev/null")
	n.applies(t, "a link by hand", unitsOf("job: {enable: true}"), model.OutcomeStable, "")

	n.sh("mkdir -p /opt/app; printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' > /opt/app/far.service; systemctl link /opt/app/far.service 2>/dev/null")
	n.applies(t, "a linked unit", unitsOf("far: {enable: true}"), model.OutcomeChanged, "Would have started. Would have enabled")
	n.sh("sed -i '/Install/,$d' /opt/app/far.service; systemctl daemon-reload")
	n.applies(t, "a linked unit without a section", unitsOf("far: {enable: true}"), model.OutcomeStable, "")
	n.applies(t, "it is disabled", unitsOf("far: {enable: false}"), model.OutcomeChanged, "Would have disabled")
	n.refuses("it is enabled without a section", unitsOf("far: {enable: true}"), "far cannot be enabled: its unit file /opt/app/far.service has no [Install] section: leave enable unset")
}
