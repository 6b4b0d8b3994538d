package packaging_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// steps replaces the commands that change the machine by functions that count. One of them loses power: it
// copies half, and no command follows.
const steps = `
lost() { :; }
step() { left=$((left - 1)); [ $left -ne 0 ] || { lost "$@"; kill -9 0; }; }
cp() {
	lost() { for last; do :; done; if [ -d "$last" ]; then echo half >"$last/half"; elif [ -d "$2" ]; then mkdir "$last"; else echo half >"$last"; fi; }
	step "$@"; lost() { :; }; command cp "$@"
}
mv() { step; command mv "$@"; }
rm() { [ ! -e "$2" ] || { step; command rm "$@"; }; }
mkdir() { step; command mkdir "$@"; }
find() { step; command find "$@"; }
sync() { :; }
sleep() { :; }
timeout() { shift; "$@"; }
# The journal has lines only after it was asked twice, and the last one after that.
journalctl() {
	case "$*" in
	--sync) ;;
	*_SYSTEMD_INVOCATION_ID=of-this-start*) echo >>"$DPKG_ROOT/asked"; case $(wc -l <"$DPKG_ROOT/asked") in 1 | 2) ;; 3) echo first;; *) echo first; echo last;; esac ;;
	esac
}
systemctl() {
	[ "$1" = is-active ] || return 0
	if [ -d "$DPKG_ROOT/var/lib/muster-previous" ]; then
		echo activating
		(set -- ready; . ../../deploy/package/upgrade) >/dev/null
	fi
}
. ../../deploy/package/upgrade
`

// disk is the file system of a machine with an agent of version 1.
type disk struct {
	t    *testing.T
	root string
	// result is why systemd says that the service ended.
	result string
	// invocation is its id in the journal.
	invocation string
}

// program is a version of muster that writes its own format of the state, and starts only with
// that or an older one.
func program(version, check, start string) string {
	return "#!/bin/sh\ncase $1 in\nversion) echo " + version + ";;\nagent) echo problem of " + version + "; exit " + check + ";;\nstart)\n" +
		"[ $(cat $2/format) -le " + version + " ] || exit 9\necho " + version + " >$2/format\nexit " + start + ";;\nesac\n"
}

func newDisk(t *testing.T) disk {
	t.Helper()
	d := disk{t: t, root: t.TempDir(), result: "success"}
	for path, text := range map[string]string{
		"usr/bin/muster":                        program("1", "0", "0"),
		"usr/lib/systemd/system/muster.service": "unit 1", "usr/lib/systemd/system/muster.service.d/package.conf": "unit 1",
		"etc/muster/agent.yaml": "nats: {servers: ['nats://127.0.0.1:1']}", "var/lib/muster/format": "1", "var/lib/muster/outbox/1.log": "reports",
		"var/lib/muster/bundles/sha256-1/manifest.yaml": "large",
	} {
		d.write(path, text)
	}

	return d
}

// copy returns a copy of the disk.
func (d disk) copy() disk {
	d.t.Helper()
	c := disk{t: d.t, root: d.t.TempDir(), result: d.result}
	if err := os.CopyFS(c.root, os.DirFS(d.root)); err != nil {
		d.t.Fatal(err)
	}

	return c
}

func (d disk) write(path, text string) {
	d.t.Helper()
	path = filepath.Join(d.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) read(path string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.root, path))
	if err != nil {
		d.t.Error(err)
	}

	return strings.TrimSpace(string(text))
}

// names lists all files.
func names(t *testing.T, root string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return strings.Join(all, "\n")
}

func (d disk) has(path string) bool {
	_, err := os.Stat(filepath.Join(d.root, path))

	return err == nil
}

// output runs upgrade to its end and returns its output.
func (d disk) output(args ...string) (ok bool, out string) {
	d.t.Helper()
	cmd := d.command(0, args...)
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		d.t.Fatal(err)
	}

	return err == nil, string(said)
}

// run runs upgrade, and loses the power at a step, if there are as many; 0 is no step.
func (d disk) run(step int, args ...string) (ok, lost bool) {
	d.t.Helper()
	cmd := d.command(step, args...)
	out, err := cmd.CombinedOutput()
	state, isExit := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if isExit && state.Signaled() {
		return false, true
	}
	if err != nil && cmd.ProcessState == nil || strings.Contains(string(out), "sh:") {
		d.t.Errorf("%q: %v\n%s", args, err, out)
	}

	return err == nil, false
}

func (d disk) command(step int, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), "sh", append([]string{"-c", steps, "upgrade"}, args...)...)
	cmd.Env = append(os.Environ(), "DPKG_ROOT="+d.root, "left="+strconv.Itoa(step), "SERVICE_RESULT="+d.result, "INVOCATION_ID="+d.invocation)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	return cmd
}

// boots does what systemd does until the agent is ready.
const boots = `
sleep() { :; }
timeout() { shift; "$@"; }
journalctl() { :; }
for try in 1 2 3; do
	[ ! -e "$DPKG_ROOT/var/lib/muster-previous/failed" ] || (set -- restore; . ../../deploy/package/upgrade)
	(set -- begin; . ../../deploy/package/upgrade)
	if [ $? -eq 0 ] && "$DPKG_ROOT/usr/bin/muster" start "$DPKG_ROOT/var/lib/muster"; then
		(set -- ready; . ../../deploy/package/upgrade)
		exit
	fi
	(SERVICE_RESULT=exit-code; set -- stopped; . ../../deploy/package/upgrade)
done
echo no version starts
exit 1
`

func (d disk) boot() {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "sh", "-c", boots)
	cmd.Env = append(os.Environ(), "DPKG_ROOT="+d.root)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Errorf("%v: %s", err, out)
	}
}

// install is what dpkg does, from the beginning or where it was left.
func (d disk) install(version string) {
	d.t.Helper()
	d.run(0, "save")
	d.unpack(version)
	d.run(0, "try")
}

func (d disk) unpack(text string) {
	d.write("usr/bin/muster", text)
	d.write("usr/lib/systemd/system/muster.service", "unit 2")
	d.write("usr/lib/systemd/system/muster.service.d/package.conf", "unit 2")
}

// stands checks that one of these versions runs with the state and units of that version, without lost files.
func (d disk) stands(versions ...string) {
	d.t.Helper()
	version := d.read("var/lib/muster/format")
	if !slices.Contains(versions, version) {
		d.t.Errorf("version %q runs, not one of %q", version, versions)
	}
	for path, want := range map[string]string{
		"var/lib/muster/outbox/1.log":                   "reports",
		"var/lib/muster/bundles/sha256-1/manifest.yaml": "large",
		"usr/lib/systemd/system/muster.service":         "unit " + version, "usr/lib/systemd/system/muster.service.d/package.conf": "unit " + version,
	} {
		if got := d.read(path); got != want {
			d.t.Errorf("%s has %q, not %q", path, got, want)
		}
	}
	if !strings.Contains(d.read("usr/bin/muster"), "echo "+version+";") {
		d.t.Errorf("the program is not that of version %s", version)
	}
	if d.has("var/lib/muster-previous") {
		d.t.Error("the previous version is still kept")
	}
}

// TestUpgradeSurvivesPowerLoss loses the power at every step of an upgrade that is fine, that
// is refused, and that is never ready: the next boot has a version that runs with its own state,
// and the upgrade can be repeated.
func TestUpgradeSurvivesPowerLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ program, version, why string }{
		"fine":        {program("2", "0", "0"), "2", ""},
		"refused":     {program("2", "1", "1"), "1", "problem of 2"},
		"never ready": {program("2", "0", "1"), "1", "it ended before it was ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, lost := newDisk(t), 0
			// Each verb of the upgrade, on a copy that loses the power at each of its steps.
			for _, verb := range []string{"save", "unpack", "try", "begin", "start", "stopped", "restore", "ready"} {
				switch verb {
				case "unpack":
					d.unpack(c.program)
					continue
				case "start":
					_ = exec.CommandContext(t.Context(), filepath.Join(d.root, "usr/bin/muster"), "start", filepath.Join(d.root, "var/lib/muster")).Run()
					continue
				case "ready":
					if c.version == "1" {
						continue
					}
				}
				if verb == "stopped" && name == "never ready" {
					d.result = "exit-code"
				}
				for step := 1; ; step++ {
					off := d.copy()
					if _, at := off.run(step, verb); !at {
						break
					}
					lost++
					off.boot()
					off.stands("1", c.version)
					if step%4 == 1 {
						off.install(c.program)
						off.boot()
						off.stands(c.version)
					}
					if t.Failed() {
						t.Fatalf("the power was lost at step %d of %s", step, verb)
					}
				}
				d.run(0, verb)
			}
			d.stands(c.version)
			if lost < 6 {
				t.Errorf("the power was lost %d times only", lost)
			}
			if c.why == "" {
				return
			}
			if got, want := d.read("var/lib/muster/upgrade"), "upgrade from muster 1 to 2 undone: "+c.why; !strings.HasPrefix(got, want) {
				t.Errorf("the agent reports %q, not %q", got, want)
			}
		})
	}
}

// TestUpgradeWithAStateThatIsNotCopiedInTime is undone: systemd ends what copies the state
// after two minutes, and starts the service again, and so on.
func TestUpgradeWithAStateThatIsNotCopiedInTime(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.install(program("2", "0", "0"))
	if _, ended := d.run(2, "begin"); !ended {
		t.Fatal("it was not ended while it copies the state")
	}
	d.result = "timeout"
	d.run(0, "stopped")
	d.boot()
	d.stands("1")
	if got, want := d.read("var/lib/muster/upgrade"), "upgrade from muster 1 to 2 undone: the state directory was not copied in time"; got != want {
		t.Errorf("the agent reports %q, not %q", got, want)
	}
}

// TestUpgradeWhileTheLastOneStarts is also a trial: a failure returns to the starting version.
func TestUpgradeWhileTheLastOneStarts(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.install(program("2", "0", "0"))
	d.run(0, "begin")
	d.write("var/lib/muster/format", "2")
	d.write("run/systemd/system/none", "") // systemd runs: see steps
	d.run(0, "save")
	if d.has("var/lib/muster-previous/state") {
		d.run(0, "ready")
	}
	if err := os.RemoveAll(filepath.Join(d.root, "run")); err != nil {
		t.Fatal(err)
	}
	d.unpack(program("3", "0", "1"))
	d.run(0, "try")
	d.boot()
	d.stands("2")
}

// TestUpgradeCopiesNoBundles, which may be larger than the rest of the disk.
func TestUpgradeCopiesNoBundles(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.install(program("2", "0", "0"))
	d.run(0, "begin")
	if !d.has("var/lib/muster-previous/state/outbox/1.log") || d.has("var/lib/muster-previous/state/bundles") {
		t.Error("what should be kept is not")
	}
}

// TestUpgradeThatIsRefusedSaysWhy also where the new program says nothing itself.
func TestUpgradeThatIsRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"1":   "problem of 2",
		"124": "problem of 2\n`muster agent check` of the new version did not end within 60 seconds",
		"139": "problem of 2\n`muster agent check` of the new version ended with exit code 139",
	} {
		d := newDisk(t)
		d.install(program("2", code, "0"))
		d.stands("1")
		if got := strings.TrimPrefix(d.read("var/lib/muster/upgrade"), "upgrade from muster 1 to 2 undone: "); got != want {
			t.Errorf("with exit code %s the agent reports %q, not %q", code, got, want)
		}
	}
}

// TestUpgradeThatCannotBeKept ends and leaves no files on a disk that may be full.
func TestUpgradeThatCannotBeKept(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	if err := os.Remove(filepath.Join(d.root, "usr/lib/systemd/system/muster.service.d/package.conf")); err != nil {
		t.Fatal(err)
	}
	if ok, _ := d.run(0, "save"); ok || d.has("var/lib/muster-previous") || d.has("var/lib/muster-previous.new") {
		t.Errorf("the upgrade goes on: %t; or something of it is left", ok)
	}
}

// TestUpgradeThatIsNotUnpacked makes the package manager roll back. No trial begins; an earlier trial
// continues.
func TestUpgradeThatIsNotUnpacked(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	d.run(0, "save")
	for step := 1; ; step++ {
		off := d.copy()
		if _, at := off.run(step, "cancel"); !at {
			off.stands("1")
			break
		}
		off.boot()
		off.stands("1")
	}
	d.unpack(program("2", "0", "1"))
	d.run(0, "save")
	d.run(0, "cancel")
	if d.read("var/lib/muster-previous/version") != "1" {
		t.Error("the version before a trial is not kept any more")
	}
	d.boot()
	d.stands("1")
}

// TestUpgradeSaysWhatWasLogged last, which the journal has a moment later.
func TestUpgradeSaysWhatWasLogged(t *testing.T) {
	t.Parallel()
	for invocation, want := range map[string]string{"of-this-start": "it ended before it was ready (exit-code  ): first\nlast", "of another": "it ended before it was ready (exit-code  )"} {
		d := newDisk(t)
		d.install(program("2", "0", "1"))
		d.run(0, "begin")
		d.result, d.invocation = "exit-code", invocation
		d.run(0, "stopped")
		d.boot()
		d.stands("1")
		if got := strings.TrimPrefix(d.read("var/lib/muster/upgrade"), "upgrade from muster 1 to 2 undone: "); got != want {
			t.Errorf("the agent reports %q, not %q", got, want)
		}
	}
}

// TestUpgradeToAProgram has one come from elsewhere than a package, and loses the power at each step.
func TestUpgradeToAProgram(t *testing.T) {
	t.Parallel()
	for version, c := range map[string]struct{ program, want string }{
		"2": {program("2", "0", "0"), "2"},
		"4": {program("4", "0", "1"), "1"},
	} {
		d := newDisk(t)
		d.write("opt/muster", c.program)
		for step := 1; ; step++ {
			off := d.copy()
			ok, lost := off.run(step, "install", filepath.Join(off.root, "opt/muster"))
			off.boot()
			if got := off.read("var/lib/muster/format"); got != "1" && got != c.want {
				t.Errorf("of version %s and 1, %s runs after a power loss at step %d", version, got, step)
			}
			if lost {
				continue
			}
			if got := off.read("var/lib/muster/format"); !ok || got != c.want || off.has("var/lib/muster/upgrade") != (c.want == "1") {
				t.Errorf("of version %s and 1, %s runs; it was installed: %t", version, got, ok)
			}
			break
		}
	}
}

// TestUpgradeToAProgramThatIsRefused is an error that says why, and changes nothing.
func TestUpgradeToAProgramThatIsRefused(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	for path, text := range map[string]string{"opt/refused": program("3", "1", "0"), "opt/none": program("3", "0", "0"), "opt/directory/file": "", "opt/text": "words"} {
		d.write(path, text)
	}
	if err := os.Chmod(filepath.Join(d.root, "opt/none"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := names(t, d.root)
	for path, want := range map[string]string{
		"opt/refused":   "muster is not upgraded: problem of 3",
		"opt/none":      "opt/none is not an executable file",
		"opt/missing":   "opt/missing is not an executable file",
		"opt/directory": "opt/directory is not an executable file",
		"opt/text":      "muster is not upgraded: ",
	} {
		ok, out := d.output("install", filepath.Join(d.root, path))
		if ok || !strings.Contains(out, want) {
			t.Errorf("%s is accepted: %t; it says %q", path, ok, out)
		}
		if after := names(t, d.root); after != before {
			t.Errorf("after %s there is %s, not %s", path, after, before)
		}
	}
	d.boot()
	d.stands("1")
}

// TestConfigured finds a server in what people write.
func TestConfigured(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	for text, want := range map[string]bool{
		"":                    false,
		"nats: {servers: []}": false,
		"nats:\n  servers: []\n  context: \"\"\n  creds: x\n": false,
		"# nats: {servers: [x]}":                              false,
		"node: x # servers: [x]":                              false,
		"nats:\n  servers:\n  - 'nats://127.0.0.1'":           true,
		"nats:\n  servers: [tls://x]":                         true,
		"nats: {servers: [ \"x\" ]}":                          true,
		"nats: {context: fleet}":                              true,
		"\"nats\": {\"servers\": [\"x\"]}":                    true,
	} {
		d.write("etc/muster/agent.yaml", text)
		if ok, _ := d.run(0, "configured"); ok != want {
			t.Errorf("%q: %t", text, ok)
		}
	}
	shipped, err := os.ReadFile("../../deploy/package/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d.write("etc/muster/agent.yaml", string(shipped))
	if ok, _ := d.run(0, "configured"); ok {
		t.Error("the configuration of the package names a server")
	}
	d.write("etc/muster/agent.yaml", strings.ReplaceAll(string(shipped), "\n# ", "\n"))
	if ok, _ := d.run(0, "configured"); !ok {
		t.Error("the example of the package's configuration names no server")
	}
}
