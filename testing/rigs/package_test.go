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

// traced puts wrappers before the package managers that record their calls.
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

// changes gives the calls that change packages.
func changes(m *rigs.Machine) []string {
	return slices.DeleteFunc(calls(m), func(c string) bool { return c == "apt-get -s" })
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
	expect("noop", "dpkg-query", "apt-cache", "apt-get -s")
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
	for _, says := range []string{"Version '9.9' for 'muster-test' was not found: there is no such version: `apt-cache madison`", "Unable to locate package no-such-package: there is no such package: check its name"} {
		if !strings.Contains(r.Stderr, says) {
			t.Errorf("nothing says %q:\n%s", says, r.Stderr)
		}
	}
	// Those that can be installed are; what does not exist is not even tried.
	if got := changes(m); !slices.Equal(got, []string{"apt-get install"}) {
		t.Errorf("the calls are %q", got)
	}
	// One bad name among ten.
	var ten []string
	for i := range 9 {
		ten = append(ten, fmt.Sprintf("muster-many%d: {ensure: present}", i))
	}
	m.Run("apt-get", "remove", "-y", "muster-many0", "muster-many1")
	put(t, m, "/root/ten.yaml", packages(append(ten[:5:5], append([]string{"muster-test: {ensure: '9.9'}"}, ten[5:]...)...)...))
	calls(m)
	r = m.Run("muster", "apply", "--json", "/root/ten.yaml")
	if got := outcomes(transactions(t, r.Stdout)); r.Code != 1 || count(got, "muster-test failed") != 1 || len(slices.DeleteFunc(got, func(o string) bool { return !strings.HasSuffix(o, " changed") })) != 9 {
		t.Errorf("exit code %d: %q", r.Code, got)
	}
	if got := changes(m); !slices.Equal(got, []string{"apt-get install"}) {
		t.Errorf("the calls are %q", got)
	}
}

// TestPackagesThatGoAlong are named, and never removed while the manifest wants them.
func TestPackagesThatGoAlong(t *testing.T) {
	for name, c := range map[string]struct {
		machine   func(testing.TB) *rigs.Machine
		installed string
	}{
		"apt": {rigs.Apt, "dpkg-query -W -f '${db:Status-Status} ' muster-lib muster-tool"},
		"dnf": {rigs.DNF, "rpm -q muster-lib muster-tool"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.machine(t)
			m.Copy(build(t), "/usr/local/bin/muster")
			put(t, m, "/root/both.yaml", packages("muster-tool: {ensure: present}", "muster-lib: {ensure: present}"))
			apply(t, m, "/root/both.yaml")
			before := m.Run("sh", "-c", c.installed).Stdout
			put(t, m, "/root/against.yaml", packages("muster-tool: {ensure: present}", "muster-lib: {ensure: absent}"))
			for _, args := range [][]string{{"--noop"}, nil, nil} {
				r := m.Run(append(append([]string{"muster", "apply", "--json"}, args...), "/root/against.yaml")...)
				got := outcomes(transactions(t, r.Stdout))
				if says := "it would also remove package:muster-tool, which package#muster-tool provides"; r.Code != 1 || !slices.Equal(got, []string{"muster-lib failed", "muster-tool stable"}) || !strings.Contains(r.Stderr, says) {
					t.Errorf("%q: exit code %d, %q\n%s", args, r.Code, got, r.Stderr)
				}
			}
			if after := m.Run("sh", "-c", c.installed).Stdout; after != before {
				t.Errorf("installed was %q and is %q", before, after)
			}

			put(t, m, "/root/lib.yaml", packages("muster-lib: {ensure: absent}"))
			would := apply(t, m, "--noop", "/root/lib.yaml")
			if want := "Would have uninstalled. Would have uninstalled muster-tool too"; would[0].NoopMessage != want {
				t.Errorf("noop: %+v", would)
			}
			r := m.Run("muster", "apply", "--json", "/root/lib.yaml")
			txs := transactions(t, r.Stdout)
			if r.Code != 0 || len(txs) != 1 || len(txs[0].Changes) != 2 || txs[0].Changes[1].Property != "package#muster-tool" || !strings.HasPrefix(txs[0].Changes[1].From, "1.0") || txs[0].Changes[1].To != "absent" {
				t.Errorf("%+v", txs)
			}
			if !strings.Contains(r.Stderr, "other packages were removed") || !strings.Contains(r.Stderr, "muster-tool") {
				t.Errorf("the log says %s", r.Stderr)
			}
			for _, tx := range apply(t, m, "/root/lib.yaml") {
				if tx.Outcome() != model.OutcomeStable {
					t.Errorf("%+v", tx)
				}
			}
		})
	}
}

// TestPackagesThatConflict are both wanted, and none of them replaces the other.
func TestPackagesThatConflict(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	put(t, m, "/root/m.yaml", packages("muster-real:", "muster-other:"))
	for range 2 {
		r := m.Run("muster", "apply", "--json", "/root/m.yaml")
		if !strings.Contains(r.Stderr, "it would also remove package:muster-real, which package#muster-real provides") || r.Code != 1 {
			t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
		}
		if got := m.Run("dpkg-query", "-W", "-f", "${db:Status-Status}", "muster-real").Stdout; got != "installed" {
			t.Errorf("muster-real is %q", got)
		}
	}
}

// TestNoopKnowsWhatFails: noop predicts a missing package, unless a repository of the same run may provide
// it.
func TestNoopKnowsWhatFails(t *testing.T) {
	for name, c := range map[string]struct {
		machine     func(testing.TB) *rigs.Machine
		setup, repo string
		says        []string
	}{
		"apt": {rigs.Apt, "apt-get install -y muster-test=1.0-1; apt-mark hold muster-test", "/etc/apt/sources.list.d/x.list", []string{"the package is held: muster-test is", "Unable to locate package nosuch", "Version '9.9' for 'tree' was not found", "Depends: no-such-thing", "virtual package provided by muster-sole"}},
		"dnf": {rigs.DNF, "echo exclude=muster-test,muster-only >> /etc/yum.repos.d/muster.repo; dnf -q makecache", "/etc/yum.repos.d/x.repo", []string{"filtered out by exclude filtering for argument: muster-test", "No match for argument: nosuch", "No match for argument: tree-9.9: there is no such version", "nothing provides no-such-thing"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.machine(t)
			m.Copy(build(t), "/usr/local/bin/muster")
			m.Run("sh", "-euc", c.setup)
			put(t, m, "/root/m.yaml", packages("muster-test: {ensure: '1:0.9-1'}", "nosuch:", "tree: {ensure: '9.9'}", "muster-needs:", "muster-only:", "muster-many1:"))
			r := m.Run("muster", "apply", "--noop", "--json", "/root/m.yaml")
			want := []string{"muster-many1 noop", "muster-needs failed", "muster-only failed", "muster-test failed", "nosuch failed", "tree failed"}
			if got := outcomes(transactions(t, r.Stdout)); r.Code != 1 || !slices.Equal(got, want) {
				t.Errorf("exit code %d: %q\n%s", r.Code, got, r.Stderr)
			}
			for _, says := range c.says {
				if !strings.Contains(r.Stderr, says) {
					t.Errorf("nothing says %q:\n%s", says, r.Stderr)
				}
			}
			put(t, m, "/root/m.yaml", "muster:\n  resources:\n    - file:\n        - "+c.repo+": {content: '#', owner: root, group: root, mode: '0644'}\n    - package: [{nosuch: {}}]\n")
			if would := apply(t, m, "--noop", "/root/m.yaml"); would[1].NoopMessage != "Would have installed" {
				t.Errorf("with a new repository: %+v", would)
			}
		})
	}
}

// TestHoldOfDNF locks a version, which the next run finds without asking dnf, and
// noop knows what a run without the plugin would say.
func TestHoldOfDNF(t *testing.T) {
	m := rigs.DNF(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	m.Run("dnf", "install", "-y", "-q", "muster-test-1.0-1")
	put(t, m, "/root/m.yaml", packages("muster-test: {ensure: present, hold: true}"))
	if would := apply(t, m, "--noop", "/root/m.yaml"); would[0].NoopMessage != "Would have held" {
		t.Errorf("noop: %+v", would)
	}
	if got := apply(t, m, "/root/m.yaml"); got[0].Outcome() != model.OutcomeChanged || got[0].Changes[0].Property != "hold" {
		t.Errorf("%+v", got)
	}
	m.Run("dnf", "upgrade", "-y", "-q")
	if r := m.Run("rpm", "-q", "muster-test"); strings.TrimSpace(r.Stdout) != "muster-test-1.0-1.noarch" {
		t.Errorf("it was upgraded: %s", r.Stdout)
	}
	traced(t, m, "dnf", "rpm")
	if got := apply(t, m, "/root/m.yaml"); got[0].Outcome() != model.OutcomeStable {
		t.Errorf("%+v", got)
	}
	if got := calls(m); !slices.Equal(got, []string{"rpm"}) {
		t.Errorf("the calls are %q", got)
	}
	if r := m.Run("muster", "status", "package", "muster-test"); !strings.Contains(r.Stdout, `"held": true`) {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	// Without hold a locked package is an error, also with noop.
	put(t, m, "/root/other.yaml", packages("muster-test: {ensure: '2.0-1'}"))
	for _, args := range [][]string{{"--noop"}, nil} {
		r := m.Run(append(append([]string{"muster", "apply"}, args...), "/root/other.yaml")...)
		if says := "the package is held: muster-test is 1.0-1; release it with `dnf versionlock delete muster-test`"; r.Code != 1 || !strings.Contains(r.Stderr, says) {
			t.Errorf("%q: exit code %d\n%s", args, r.Code, r.Stderr)
		}
	}
	m.Run("sh", "-c", "mv /etc/dnf/plugins/versionlock.conf /root/")
	for _, args := range [][]string{{"--noop"}, nil} {
		r := m.Run(append(append([]string{"muster", "apply"}, args...), "/root/m.yaml")...)
		if says := "a plugin of the package manager is missing: hold needs versionlock: install python3-dnf-plugin-versionlock"; r.Code != 1 || !strings.Contains(r.Stderr, says) {
			t.Errorf("%q: exit code %d\n%s", args, r.Code, r.Stderr)
		}
	}
	put(t, m, "/root/both.yaml", "muster:\n  resources:\n    - file:\n        - /etc/dnf/plugins/versionlock.conf: {source: /root/versionlock.conf, owner: root, group: root, mode: '0644'}\n    - package: [{muster-test: {hold: true}}]\n")
	if would := apply(t, m, "--noop", "/root/both.yaml"); would[1].NoopMessage != "Would have held" {
		t.Errorf("with the plugin: %+v", would)
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
	if got, want := changes(m), []string{"apt-get update", "apt-get install", "apt-get install"}; !slices.Equal(got, want) {
		t.Errorf("the calls are %q, not %q", got, want)
	}
	// Without fresh lists, muster does not report the latest version.
	m.Run("sh", "-c", "echo deb [trusted=yes] http://127.0.0.1:1/ ./ >> /etc/apt/sources.list")
	r = m.Run("muster", "apply", "/root/m.yaml")
	if r.Code != 1 || !strings.Contains(r.Stderr, "the latest version is unknown: Failed to fetch http://127.0.0.1:1/") || !strings.Contains(r.Stderr, "package#tree stable") {
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

// TestFileOfAPackageIsRemoved has a file taken away that a package of the same run
// brings: noop does not call it gone already.
func TestFileOfAPackageIsRemoved(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	put(t, m, "/root/m.yaml", packages("muster-test:")+"    - file: [{/etc/muster-test/c.conf: {ensure: absent, require: [package#muster-test]}}]\n")
	would := apply(t, m, "--noop", "/root/m.yaml")
	if want := "unknown until package#muster-test is applied"; len(would) != 2 || !would[1].Skipped || would[1].NoopMessage != want {
		t.Errorf("noop: %+v", would)
	}
	for _, want := range [][]string{{"/etc/muster-test/c.conf changed", "muster-test changed"}, {"/etc/muster-test/c.conf stable", "muster-test stable"}} {
		if got := outcomes(apply(t, m, "/root/m.yaml")); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestRepositoryAndItsPackageInOneRun adds a repository and installs a package from it.
func TestRepositoryAndItsPackageInOneRun(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	m.Run("sh", "-euc", "mv /etc/apt/sources.list /root/repo.list; apt-get update")
	traced(t, m, "apt-get")
	text := "muster:\n  resources:\n    - file:\n        - /etc/apt/sources.list.d/repo.list: {source: /root/repo.list, owner: root, group: root, mode: \"0644\"}\n"
	put(t, m, "/root/m.yaml", text+"    - package:\n        - tree: {ensure: latest, cache_max_age: 24h}\n        - nginx: {cache_max_age: 24h}\n")
	apply(t, m, "/root/m.yaml")
	if got, want := changes(m), []string{"apt-get update", "apt-get update", "apt-get install"}; !slices.Equal(got, want) {
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
	// Once to see whether dnf would install the package.
	if got := calls(m); count(got, "dnf install") != 2 || slices.Contains(got, "dpkg-query") {
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
