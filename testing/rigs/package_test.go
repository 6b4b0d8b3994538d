//go:build system

package rigs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
)

// put writes a file into the machine.
func put(t testing.TB, m *rigs.Machine, path, text string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	m.Copy(from, path)
}

// traced puts programs before those of the package managers that write down
// that they were called.
func traced(t *testing.T, m *rigs.Machine, programs ...string) {
	t.Helper()
	for _, name := range programs {
		put(t, m, "/usr/local/sbin/"+name, "#!/bin/sh\nprintf '%s %s\\n' "+name+" \"$1\" >> /root/calls\nexec /usr/bin/"+name+" \"$@\"\n")
	}
}

// calls gives the first word, or the first two of apt-get and dnf, of every call since it was asked last.
func calls(m *rigs.Machine) []string {
	var out []string
	for line := range strings.Lines(m.Run("sh", "-c", "cat /root/calls; rm -f /root/calls").Stdout) {
		words := strings.Fields(line)
		if words[0] == "apt-get" || words[0] == "dnf" {
			out = append(out, words[0]+" "+words[1])
			continue
		}
		out = append(out, words[0])
	}

	return out
}

// packages gives a manifest of packages, each a name and the properties behind it.
func packages(entries ...string) string {
	var b strings.Builder
	b.WriteString("muster:\n  resources:\n    - package:\n")
	for _, p := range entries {
		fmt.Fprintf(&b, "        - %s\n", p)
	}

	return b.String()
}

// outcomes gives the references of transactions with their outcomes.
func outcomes(transactions []model.Transaction) []string {
	var out []string
	for i := range transactions {
		out = append(out, transactions[i].Name+" "+string(transactions[i].Outcome()))
	}
	slices.Sort(out)

	return out
}

func TestPackagesOfTheDocumentation(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	if r := m.Run("apt-get", "install", "-y", "-q", "telnet"); r.Code != 0 {
		t.Fatal(r.Stderr)
	}
	runPage(t, m, "package", 3)
}

// TestPackagesAreAskedForTogether counts the processes of runs.
func TestPackagesAreAskedForTogether(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	traced(t, m, "apt-get", "apt-cache", "dpkg-query", "dpkg")
	expect := func(what string, want ...string) {
		t.Helper()
		if got := calls(m); !slices.Equal(got, want) {
			t.Errorf("%s: the calls are %q, not %q", what, got, want)
		}
	}
	installed := strings.Fields(m.Run("dpkg-query", "-W", "-f", "${Package}\n").Stdout)
	calls(m)
	if len(installed) < 100 {
		t.Fatalf("only %d packages are installed", len(installed))
	}
	var hundred []string
	for _, name := range installed[:100] {
		hundred = append(hundred, name+": {ensure: present}")
	}
	put(t, m, "/root/hundred.yaml", packages(hundred...))
	if got := apply(t, m, "/root/hundred.yaml"); len(got) != 100 {
		t.Errorf("%d transactions", len(got))
	}
	expect("100 stable packages", "dpkg-query")

	var ten []string
	for i := range 10 {
		ten = append(ten, fmt.Sprintf("muster-many%d: {ensure: latest}", i))
	}
	put(t, m, "/root/ten.yaml", packages(ten...))
	before := withoutCaches(m.Changes())
	if got := apply(t, m, "--noop", "/root/ten.yaml"); len(got) != 10 || got[0].NoopMessage != "Would have installed latest" || !got[9].Changed {
		t.Errorf("noop: %+v", got)
	}
	expect("noop", "dpkg-query", "apt-cache")
	if diff := hosttest.SnapshotDiff(before, withoutCaches(m.Changes())); len(diff) > 0 {
		t.Errorf("noop changed the machine:\n%s", strings.Join(diff, "\n"))
	}
	apply(t, m, "/root/ten.yaml")
	got := calls(m)
	if n := count(got, "apt-get install"); n != 1 {
		t.Errorf("ten new packages: %d times apt-get install in %q", n, got)
	}
	for _, tx := range apply(t, m, "/root/ten.yaml") {
		if tx.Outcome() != model.OutcomeStable {
			t.Errorf("%s is %s the second time", tx.Name, tx.Outcome())
		}
	}
	expect("ten that are the latest", "dpkg-query", "apt-cache")
}

func count(list []string, want string) int {
	n := 0
	for _, each := range list {
		if each == want {
			n++
		}
	}

	return n
}

// withoutCaches leaves out the trace of calls, and what package managers derive
// from other files when they are asked.
func withoutCaches(tree hosttest.Tree) hosttest.Tree {
	out := hosttest.Tree{}
	for path, item := range tree {
		if strings.HasPrefix(path, "var/cache/") || strings.HasPrefix(path, "var/log/") || strings.HasPrefix(path, "var/lib/rpm") || path == "var/cache" || path == "var/log" || path == "root" || path == "root/calls" {
			continue
		}
		out[path] = item
	}

	return out
}

// TestOnePackageThatFailsKeepsNoOtherBack falls back from one transaction to one
// for each.
func TestOnePackageThatFailsKeepsNoOtherBack(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	traced(t, m, "apt-get")
	put(t, m, "/root/m.yaml", packages("muster-many0:", "no-such-package:", `muster-test: {ensure: "9.9"}`, "muster-many1:", "muster-test.x: {ensure: absent}"))
	r := m.Run("muster", "apply", "--json", "/root/m.yaml")
	want := []string{"muster-many0 changed", "muster-many1 changed", "muster-test failed", "muster-test.x stable", "no-such-package failed"}
	if got := outcomes(transactions(t, r.Stdout)); r.Code != 1 || !slices.Equal(got, want) {
		t.Errorf("exit code %d: %q, not %q\n%s", r.Code, got, want, r.Stderr)
	}
	for _, says := range []string{"there is no such version: `apt-cache madison`", "there is no such package: check its name"} {
		if !strings.Contains(r.Stderr, says) {
			t.Errorf("nothing says %q:\n%s", says, r.Stderr)
		}
	}
	if got := calls(m); count(got, "apt-get install") != 5 {
		t.Errorf("the calls are %q", got)
	}
}

// TestPackageListsAreRefreshedOnceARun has packages that want it, before and
// after something that makes every look old.
func TestPackageListsAreRefreshedOnceARun(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	traced(t, m, "apt-get")
	text := packages("muster-many0: {cache_max_age: 1ms}", "muster-test: {ensure: latest, cache_max_age: 1ms}") +
		"    - exec: [{touch /root/x: {}}]\n    - package: [{tree: {cache_max_age: 1ms}}]\n" +
		"    - exec: [{say: {command: 'echo ${ outputs(\"package#muster-test\").version }', logoutput: true}}]\n"
	put(t, m, "/root/m.yaml", text)
	r := m.Run("muster", "apply", "/root/m.yaml")
	if r.Code != 0 || !strings.Contains(r.Stdout+r.Stderr, "1:0.9-1") {
		t.Errorf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if got, want := calls(m), []string{"apt-get update", "apt-get install", "apt-get install"}; !slices.Equal(got, want) {
		t.Errorf("the calls are %q, not %q", got, want)
	}
	// Whom the lists cannot be refreshed for is not told that it has the latest.
	m.Run("sh", "-c", "echo deb [trusted=yes] http://127.0.0.1:1/ ./ >> /etc/apt/sources.list")
	r = m.Run("muster", "apply", "/root/m.yaml")
	if r.Code != 1 || !strings.Contains(r.Stderr, "the latest version is unknown: a download failed") || !strings.Contains(r.Stderr, "package#tree stable") {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
}

// TestVersionForALaterResource has a file take the version that was installed.
func TestVersionForALaterResource(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	put(t, m, "/root/m.yaml", "muster:\n  resources:\n    - file:\n        - /root/version: {content: \"${ outputs('package#muster-test').version }\", owner: root, group: root, mode: '0644'}\n"+
		"    - package: [{muster-test: {ensure: latest}}]\n")
	would := apply(t, m, "--noop", "/root/m.yaml")
	if want := "unknown until package#muster-test is applied: `content` is known after apply"; len(would) != 2 || would[1].NoopMessage != want {
		t.Errorf("noop: %+v", would)
	}
	for range 2 {
		apply(t, m, "/root/m.yaml")
		if r := m.Run("cat", "/root/version"); r.Stdout != "1:0.9-1" {
			t.Errorf("the version is %+v", r)
		}
	}
	for _, tx := range apply(t, m, "--noop", "/root/m.yaml") {
		if tx.Outcome() != model.OutcomeStable {
			t.Errorf("%s would be %s again", tx.Ref(), tx.Outcome())
		}
	}
}

// TestRepositoryAndItsPackageInOneRun adds a repository and installs what is in it.
func TestRepositoryAndItsPackageInOneRun(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	m.Run("sh", "-euc", "mv /etc/apt/sources.list /root/repo.list; apt-get update")
	traced(t, m, "apt-get")
	text := "muster:\n  resources:\n    - file:\n        - /etc/apt/sources.list.d/repo.list: {source: /root/repo.list, owner: root, group: root, mode: \"0644\"}\n"
	put(t, m, "/root/m.yaml", text+"    - package:\n        - tree: {ensure: latest, cache_max_age: 24h}\n        - nginx: {cache_max_age: 24h}\n")
	apply(t, m, "/root/m.yaml")
	if got, want := calls(m), []string{"apt-get update", "apt-get update", "apt-get install"}; !slices.Equal(got, want) {
		t.Errorf("the calls are %q, not %q", got, want)
	}
	apply(t, m, "/root/m.yaml")
	if got := calls(m); len(got) > 0 {
		t.Errorf("the second time the calls are %q", got)
	}
}

// TestDNFOwnsItsPlatform runs where both package managers are.
func TestDNFOwnsItsPlatform(t *testing.T) {
	m := rigs.DNF(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	traced(t, m, "dnf", "rpm", "apt-get", "dpkg-query")
	put(t, m, "/root/m.yaml", packages("muster-many0:", "muster-many1:", "muster-many2: {ensure: '1.0'}", "muster-test: {ensure: latest}"))
	before := withoutCaches(m.Changes())
	if got := apply(t, m, "--noop", "/root/m.yaml"); got[0].Provider != "dnf" || got[3].NoopMessage != "Would have installed latest" {
		t.Errorf("noop: %+v", got)
	}
	if diff := hosttest.SnapshotDiff(before, withoutCaches(m.Changes())); len(diff) > 0 {
		t.Errorf("noop changed the machine:\n%s", strings.Join(diff, "\n"))
	}
	calls(m)
	apply(t, m, "/root/m.yaml")
	if got := calls(m); count(got, "dnf install") != 1 || slices.Contains(got, "dpkg-query") {
		t.Errorf("the calls are %q", got)
	}
	for _, tx := range apply(t, m, "/root/m.yaml") {
		if tx.Outcome() != model.OutcomeStable {
			t.Errorf("%s is %s the second time", tx.Name, tx.Outcome())
		}
	}
	m.Run("sh", "-c", "sed -i /muster-test/d /root/m.yaml; rm /root/calls")
	apply(t, m, "/root/m.yaml")
	if got := calls(m); !slices.Equal(got, []string{"rpm"}) {
		t.Errorf("stable packages: the calls are %q", got)
	}
	r := m.Run("muster", "status", "package", "tzdata", "--provider", "apt")
	if r.Code != 0 || !strings.Contains(r.Stdout, "\"ensure\": \"20") {
		t.Errorf("named apt: exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	// On Debian itself it is the other way round.
	put(t, m, "/etc/os-release", "NAME=Debian\nID=debian\nVERSION_ID=12\n")
	calls(m)
	r = m.Run("muster", "status", "package", "tzdata")
	if got := calls(m); r.Code != 0 || !strings.Contains(r.Stdout, `"provider": "apt"`) || !slices.Equal(got, []string{"dpkg-query"}) {
		t.Errorf("on Debian: exit code %d, the calls are %q\n%s%s", r.Code, got, r.Stdout, r.Stderr)
	}
}
