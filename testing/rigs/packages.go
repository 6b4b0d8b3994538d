//go:build system

package rigs

import (
	_ "embed"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The scripts build packages and repositories on the machine, and configure no others. Their comments list
// them.
var (
	//go:embed apt.sh
	aptScript string
	//go:embed dnf.sh
	dnfScript string
)

// Apt makes a machine with a repository for apt.
func Apt(t testing.TB) *Machine {
	t.Helper()

	return New(t).script(aptScript)
}

// DNF makes a machine that identifies as Fedora, with dnf, rpm and a repository. Apt is also installed.
func DNF(t testing.TB) *Machine {
	t.Helper()

	return over(t, withDNF(t)).script(dnfScript)
}

func (m *Machine) script(text string) *Machine {
	m.t.Helper()
	if r := m.Run("sh", "-euc", text); r.Code != 0 {
		m.t.Fatalf("the repository could not be made: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}

	return m
}

// withDNF returns the Debian of the rigs with dnf in it.
func withDNF(t testing.TB) string {
	t.Helper()

	return derived(t, "dnf-plugins", `apt-get install -y -q --no-install-recommends dnf dnf-plugins-core rpm createrepo-c
# it makes a repository that nobody signed
rm /etc/dnf/plugins/local.conf /usr/lib/python3/dist-packages/dnf-plugins/local.py
apt-get clean
rm -rf /var/lib/apt/lists/*`)
}

// BootWith makes a machine as Boot does, on which apt knows the packages and has
// them in its cache, so that it installs them without a network.
func BootWith(t testing.TB, packages ...string) *Machine {
	t.Helper()
	names := strings.Join(packages, " ")

	return bootOver(t, derived(t, strings.ReplaceAll(names, " ", "-"), "apt-get install -y -q --download-only "+names))
}

// derived returns the Debian of the rigs with what a script of a shell, which has
// the network, does to it. It is made when it is not there yet.
func derived(t testing.TB, name, script string) string {
	t.Helper()
	base := Debian(t)
	made := base + "-" + name
	defer lock(t, made+".lock")()
	if _, err := os.Stat(made); err == nil {
		return made
	}
	part := made + ".part"
	if err := os.RemoveAll(part); err != nil {
		t.Fatal(err)
	}
	const install = `cp -a "$1" "$2"
cp /etc/resolv.conf "$2/etc/resolv.conf"
mount -t proc proc "$2/proc"
chroot "$2" sh -euc "export DEBIAN_FRONTEND=noninteractive
apt-get update -q
$3"`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-euc", install, "sh", base, part, script)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making a Debian with %s: %v\n%s", name, err, out)
	}
	if err := os.Rename(part, made); err != nil {
		t.Fatal(err)
	}

	return made
}

// insideVariable is set for a test that runs in a machine.
const insideVariable = "MUSTER_TEST_INSIDE"

// Inside runs the calling test in a machine: outside it makes that, copies this
// test program into it, runs the test there and gives false; inside it gives true.
func Inside(t *testing.T, machine func(testing.TB) *Machine) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return true
	}
	// Each has a separate machine, and most of the time is waiting.
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const copied = "/usr/local/lib/test/program"
	m := machine(t)
	m.Copy(program, copied)
	r := m.Run("env", insideVariable+"=1", "TMPDIR=/tmp", copied, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+commandTime.String())
	if r.Code != 0 {
		t.Fatalf("in the machine: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if testing.Verbose() {
		t.Logf("in the machine:\n%s", r.Stdout)
	}

	return false
}
