//go:build system

package rigs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/rigs"
)

// released makes a program that says it is a version, with the tags of deploy/package/build.
func released(t *testing.T, version string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "muster")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "nodemo", "-ldflags", "-s -w -X github.com/musterfleet/muster/cmd/muster/cli.release="+version, "-o", binary, "./cmd/muster")
	cmd.Dir = rigs.Checkout(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building muster: %v\n%s", err, out)
	}

	return binary
}

// pack makes the packages of a program, and returns their directory.
func pack(t *testing.T, binary, version string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(rigs.Checkout(t), "deploy/package/pack"), binary, version, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("packing muster: %v\n%s", err, out)
	}

	return dir
}

// The broken versions: one refuses its configuration; one damages its state, never becomes ready and ignores
// signals; one exits at once.
const (
	refused = `case "$*" in
version) echo 3.0;;
"agent check"*) echo "muster: agent.yaml:1:1: 3.0 does not know this" >&2; exit 1;;
esac
`
	hanging = `case "$*" in
version) echo 4.0;;
"agent run"*) echo 9 > /var/lib/muster/format; rm -rf /var/lib/muster/assignments; echo hanging >&2; trap '' TERM; while :; do sleep 1; done;;
esac
`
	ending = `case "$*" in
version) echo 6.0;;
"agent run"*) echo "6.0 does not know this state" >&2; exit 1;;
esac
`
)

// repository makes the package of 1.0 one of several in a repository of apt.
const repository = `set -e
cd /srv/repo
unpack() { # version program
  dpkg-deb -R muster_1.0_*.deb /srv/p
  sed -i "s/^Version: .*/Version: $1/" /srv/p/DEBIAN/control
  cp $2 /srv/p/usr/bin/muster
  chmod 755 /srv/p/usr/bin/muster
  echo "# $1" >> /srv/p/usr/lib/systemd/system/muster.service
  sed -i '/ usr\/bin\/muster$/d; / usr\/lib\/systemd/d' /srv/p/DEBIAN/md5sums
  dpkg-deb --root-owner-group -Znone -b /srv/p muster-$1.deb >/dev/null
  rm -r /srv/p
}
unpack 2.0 /root/2.0
unpack 3.0 /root/3.0
unpack 4.0 /root/4.0
# One that cannot be unpacked: another package has one of its files.
dpkg-deb -R muster-2.0.deb /srv/p
sed -i 's/^Version: .*/Version: 5.0/' /srv/p/DEBIAN/control
cp /usr/bin/dpkg /srv/p/usr/bin/dpkg
dpkg-deb --root-owner-group -Znone -b /srv/p /srv/muster-5.0.deb >/dev/null
rm -r /srv/p
mkdir -p /srv/toy/DEBIAN
printf 'Package: toy\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.net>\nDescription: nothing\n' > /srv/toy/DEBIAN/control
dpkg-deb --root-owner-group -b /srv/toy toy.deb >/dev/null
for deb in *.deb; do
  dpkg-deb -f $deb
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $deb $(stat -c %s $deb) $(sha256sum $deb | cut -d' ' -f1)
done > Packages
echo 'deb [trusted=yes] file:/srv/repo ./' > /etc/apt/sources.list
apt-get update -qq
mkdir -p /etc/systemd/system/muster.service.d
printf '[Service]\nTimeoutStartSec=5\n' > /etc/systemd/system/muster.service.d/test.conf
systemd-run --quiet --unit nats /usr/local/bin/natsserver 4222 /root/nats
until operator fleet init --yes; do sleep 0.1; done >/dev/null 2>&1`

// packaged is a booted machine with the package of muster as agent, and a separate program for the operator.
type packaged struct{ node }

// await waits until a command of a shell succeeds.
func (p packaged) await(what, command string) {
	p.t.Helper()
	if r := p.Run("timeout", "60", "sh", "-c", "until "+command+"; do sleep 0.1; done"); r.Code != 0 {
		p.t.Fatalf("%s did not come: %s\n%s", what, command, p.sh("systemctl status muster muster-restore --no-pager || true; journalctl --no-pager -n 60 -u muster -u muster-restore; dpkg -l muster; ls -la /var/lib/muster* /root"))
	}
}

// push assigns a manifest to the node.
func (p packaged) push(name, text string) {
	p.t.Helper()
	p.write("/root/"+name+".yaml", "muster:\n  resources:\n"+text)
	p.sh("operator fleet push --node web01 /root/" + name + ".yaml")
}

// wants assigns a version of the package to the node.
func (p packaged) wants(version string) {
	p.t.Helper()
	p.push("self", "    - package: [{muster: {ensure: '"+version+"'}}]\n    - exec: [{touch /root/self-"+version+": {creates: /root/self-"+version+"}}]\n")
}

// runs waits until a version of the agent runs, which no upgrade is on trial.
func (p packaged) runs(version string) {
	p.t.Helper()
	p.await("version "+version, `operator fleet nodes --json | grep -q '"version": *"`+version+`"' && systemctl is-active --quiet muster && ! ls -d /var/lib/muster-previous 2>/dev/null`)
	if got := p.sh("muster version"); got != version {
		p.t.Errorf("the program is %s, not %s", got, version)
	}
}

// report contains the compared fields of a report.
type report struct {
	Kind, Outcome string
	Seq           uint64
	Data          struct {
		Message, Manifest, Version, Name string
		Drift                            *model.Repair
	}
}

// reports are the reports of the node.
func (p packaged) reports() []report {
	p.t.Helper()
	var out []report
	for line := range strings.Lines(p.sh("operator fleet reports --no-follow --since 1h --json")) {
		var r report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		out = append(out, r)
	}

	return out
}

// undone waits for the report about an upgrade that was undone.
func (p packaged) undone(version, why string) {
	p.t.Helper()
	p.await("the report", "operator fleet reports --no-follow --since 1h --kind node --outcome refused --json | grep -q 'to "+version+" undone'")
	if !slices.ContainsFunc(p.reports(), func(r report) bool {
		return r.Kind == "node" && strings.Contains(r.Data.Message, "upgrade from muster 2.0 to "+version+" undone: ") && strings.Contains(r.Data.Message, why)
	}) {
		p.t.Errorf("no report says that %s was undone because of %q", version, why)
	}
}

// TestPackages has the packages of one program on machines of both kinds.
func TestPackages(t *testing.T) {
	one := released(t, "1.0")
	packages := pack(t, one, "1.0")
	t.Run("deb", func(t *testing.T) { t.Parallel(); upgradesItself(t, one, packages) })
	t.Run("rpm", func(t *testing.T) { t.Parallel(); ofRPM(t, packages) })
	t.Run("reproducible", func(t *testing.T) { t.Parallel(); reproducible(t) })
	t.Run("without the server of the demo", func(t *testing.T) {
		t.Parallel()
		out, err := exec.CommandContext(t.Context(), one, "demo").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "has no NATS server for the demo: in a clone of the repository, run go run ./cmd/muster demo") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// reproducible packs a program twice, at different times and places.
func reproducible(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, b := pack(t, program, "1.0"), pack(t, program, "1.0")
	if r := exec.CommandContext(t.Context(), "diff", "-r", a, b); r.Run() != nil {
		t.Errorf("they differ: %s", r)
	}
}

// ofRPM installs, upgrades and removes the rpm, on a machine without systemd.
func ofRPM(t *testing.T, packages string) {
	n := node{Machine: rigs.DNF(t), t: t}
	n.Copy(packages, "/srv/muster")
	n.sh("dnf install -y -q /srv/muster/*.rpm")
	if got := n.sh("muster version; rpm -V muster; stat -c %a /etc/muster/agent.yaml; test -s /usr/share/zsh/site-functions/_muster && ls -d /var/lib/muster* 2>/dev/null || true"); got != "1.0\n600" {
		t.Errorf("after the installation: %q", got)
	}
	n.write("/etc/muster/agent.yaml", "nats: {servers: ['nats://127.0.0.1:4222']}\n")
	n.sh("mkdir -m 700 /var/lib/muster; rpm -U --force /srv/muster/*.rpm")
	// It is on trial until it is started.
	if got := n.sh("cat /var/lib/muster-previous/version; cat /etc/muster/agent.yaml"); got != "1.0\nnats: {servers: ['nats://127.0.0.1:4222']}" {
		t.Errorf("after the upgrade: %q", got)
	}
	// The files of a state directory with another owner, and the targets of its links, stay untouched.
	n.sh("touch -d @0 /root/victim; chown nobody /var/lib/muster; ln -s /root/victim /var/lib/muster/upgrade.new; echo why > /var/lib/muster-previous/failed; /usr/lib/muster/upgrade restore")
	if got := n.sh("stat -c %Y /root/victim; ls /var/lib; readlink /var/lib/muster/upgrade.new"); !strings.HasPrefix(got, "0\n") || strings.Contains(got, "muster-previous") || !strings.HasSuffix(got, "/root/victim") {
		t.Errorf("with the state of another user: %q", got)
	}
	n.sh("dnf remove -y -q muster")
	if got := n.sh("ls -d /usr/bin/muster /usr/lib/muster /etc/muster/agent.yaml* /var/lib/muster* 2>/dev/null || true"); got != "/etc/muster/agent.yaml.rpmsave\n/var/lib/muster" {
		t.Errorf("after the removal: %q", got)
	}
}

// upgradesItself has the package installed, configured, upgraded during a run and by the
// agent itself, put back twice, and removed by the agent.
func upgradesItself(t *testing.T, one, packages string) {
	p := packaged{node{Machine: rigs.Boot(t), t: t}}
	p.Copy(one, "/usr/local/bin/operator")
	p.Copy(natsServer(t), "/usr/local/bin/natsserver")
	p.Copy(packages, "/srv/repo")
	p.Copy(released(t, "2.0"), "/root/2.0")
	p.write("/root/3.0", "#!/bin/sh\n"+refused)
	p.write("/root/4.0", "#!/bin/sh\n"+hanging)
	p.write("/root/6.0", "#!/bin/sh\n"+ending)
	p.sh(repository)

	// Without a server it is enabled, and does not start.
	p.sh("apt-get install -y -qq muster=1.0 && muster version && man -w muster 2>/dev/null || true")
	if got := p.sh("systemctl is-enabled muster muster-restore; systemctl start muster; systemctl is-active muster; stat -c %a /etc/muster/agent.yaml; cat /var/lib/dpkg/info/muster.conffiles"); got != "enabled\nenabled\ninactive\n600\n/etc/muster/agent.yaml" {
		t.Errorf("after the installation: %q", got)
	}
	p.write("/etc/muster/agent.yaml", "node: web01\nnats: {servers: ['nats://127.0.0.1:4222']}\n")
	p.sh("systemctl start muster")
	p.runs("1.0")

	// Upgraded by hand during a run: the run continues to its end and is reported.
	p.push("site", "    - file: [{/root/kept: {content: one, owner: root, group: root, mode: '0644'}}]\n    - exec: [{slow: {command: \"sh -c 'touch /root/running; until [ -e /root/go ]; do sleep 0.1; done; touch /root/done'\", creates: /root/done}}]\n")
	p.await("the run", "[ -e /root/running ]")
	p.sh("apt-get install -y -qq muster=2.0")
	if got := p.sh("muster version; operator fleet nodes --json | grep -o '\"version\": *\"[^\"]*'; systemctl is-active muster || true; touch /root/go"); got != "2.0\n\"version\": \"1.0\ndeactivating" {
		t.Errorf("after the upgrade, while the run goes on: %q", got)
	}
	p.runs("2.0")
	p.sh("ls /root/done")

	// A package that cannot be unpacked changes nothing.
	if got := p.sh("! dpkg -i /srv/muster-5.0.deb 2>/dev/null >&2 && ls -d /var/lib/muster-previous* 2>/dev/null || true; muster version; dpkg-query -W -f '${Version} ${db:Status-Status}' muster"); got != "2.0\n2.0 installed" {
		t.Errorf("after a package that cannot be unpacked: %q", got)
	}

	// By a manifest on the node, to a working version.
	pid := p.sh("systemctl show -P MainPID muster")
	p.wants("3.0")
	p.undone("3.0", "3.0 does not know this")
	p.runs("2.0")
	if now := p.sh("systemctl show -P MainPID muster"); now != pid {
		t.Error("the agent was restarted for a version that was refused")
	}
	p.wants("4.0")
	p.undone("4.0", "it ended before it was ready (timeout killed KILL): hanging")
	p.runs("2.0")
	p.await("the rest of the manifest", "[ -e /root/self-4.0 ]")
	if got := p.sh("cat /var/lib/muster/format; grep '^#' /usr/lib/systemd/system/muster.service | tail -n 1; dpkg-query -W -f '${Version} ${db:Status-Status}' muster"); got != "1\n# 2.0\n4.0 installed" {
		t.Errorf("after 4.0 was put back: %q", got)
	}

	// Programs from elsewhere: some are refused, and what one logs that ends at once is in the report.
	if got := p.sh("cp /root/3.0 /root/none; chmod 644 /root/none; chmod 755 /root/3.0 /root/6.0; for f in 3.0 none missing; do ! /usr/lib/muster/upgrade install /root/$f 2>&1 || echo $f is accepted; done; ls -d /var/lib/muster-previous* /usr/bin/muster.new 2>/dev/null || true; muster version"); got != `muster is not upgraded: muster: agent.yaml:1:1: 3.0 does not know this
muster is not upgraded: /root/none is not an executable file
muster is not upgraded: /root/missing is not an executable file
2.0` {
		t.Errorf("after programs that are refused: %q", got)
	}
	for range 6 {
		p.sh("/usr/lib/muster/upgrade install /root/6.0")
		p.await("the end of the trial", "[ ! -e /var/lib/muster-previous ]")
		p.runs("2.0")
	}
	if got := p.sh("journalctl -q -o cat -u muster-restore | grep 'to 6.0 undone' | sort | uniq -c | sed 's/^ *//'"); got != "6 upgrade from muster 2.0 to 6.0 undone: it ended before it was ready (exit-code exited 1): 6.0 does not know this state" {
		t.Errorf("of six upgrades to what ends at once: %q", got)
	}

	// By its own manifest, to one that is.
	p.wants("1.0")
	p.runs("1.0")
	p.await("the rest of the manifest", "[ -e /root/self-1.0 ]")
	p.push("site", "    - file: [{/root/kept: {content: two, owner: root, group: root, mode: '0644'}}]\n")
	p.await("the file", "[ $(cat /root/kept) = two ]")
	p.repairs()
	p.noneLost()

	// The agent removes its package; then it is installed again and purged.
	p.push("self", "    - package: [{muster: {ensure: absent}}]\n")
	p.await("the end", "[ ! -e /usr/bin/muster ] && [ $(systemctl show -P ActiveState muster) = inactive ]")
	if got := p.sh("systemctl is-enabled muster 2>/dev/null || true; ls -d /etc/muster/agent.yaml /var/lib/muster* /usr/lib/muster 2>/dev/null || true"); got != "/etc/muster/agent.yaml\n/var/lib/muster" {
		t.Errorf("after the removal: %q", got)
	}
	p.sh("operator fleet rm --node web01 self; apt-get install -y -qq muster=1.0")
	p.runs("1.0")
	if got := p.sh("systemctl is-enabled muster"); got != "enabled" {
		t.Errorf("installed again it is %q", got)
	}
	if got := p.sh("dpkg --purge muster >/dev/null; ls -d /etc/muster /var/lib/muster* 2>/dev/null || true"); got != "" {
		t.Errorf("after the purge: %q", got)
	}
}

// repairs has a file, a service and a package drift, which is repaired although no
// interval is over.
func (p packaged) repairs() {
	p.t.Helper()
	p.push("drift", `    - file: [{/etc/systemd/system/keeper.service: {content: "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n", owner: root, group: root, mode: '0644'}}]
    - service: [{keeper: {ensure: running, enable: true}}]
    - package: [{toy: {ensure: present}}]
`)
	service, toy := "systemctl is-active --quiet keeper", "dpkg -s toy 2>/dev/null | grep -q 'Status: install ok installed'"
	const link = "/etc/systemd/system/multi-user.target.wants/keeper.service"
	p.await("the service", service)
	p.await("the package", toy)
	p.await("the first run", "operator fleet reports --no-follow --since 1h --kind run --json | grep -q node.web01.drift")
	for _, drift := range []struct{ resource, by, repaired string }{
		{"file#/root/kept", "echo other > /root/kept", "[ $(cat /root/kept) = two ]"},
		{"service#keeper", "systemctl stop keeper", service},
		{"service#keeper", "rm " + link, "[ -L " + link + " ]"},
		{"package#toy", "dpkg -r toy >/dev/null", toy},
	} {
		p.sh(drift.by)
		p.await("the repair of "+drift.resource, drift.repaired)
		_, name, _ := strings.Cut(drift.resource, "#")
		p.await("the report about "+drift.resource, `operator fleet reports --no-follow --since 1h --kind transaction --json | grep '"name": *"`+name+`"' | grep '"cause": *"drift"' | grep -q '"latency"'`)
	}
	for _, r := range p.reports() {
		if r.Kind == "transaction" && r.Data.Drift != nil {
			p.t.Logf("%s: repaired %s after it was seen", r.Data.Name, r.Data.Drift.Latency)
		}
	}
}

// noneLost checks that all reports have arrived, in one sequence over all versions.
func (p packaged) noneLost() {
	p.t.Helper()
	var seqs []uint64
	runs := map[string]int{}
	for _, r := range p.reports() {
		seqs = append(seqs, r.Seq)
		runs[r.Kind+" "+r.Outcome+" "+r.Data.Manifest]++
	}
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != uint64(i)+1 {
			p.t.Fatalf("report %d is missing, or there twice: %v", i+1, seqs)
		}
	}
	if runs["run changed node.web01.site"] < 2 || runs["run notrun node.web01.self"] != 2 {
		p.t.Errorf("reported are %v", runs)
	}
}
