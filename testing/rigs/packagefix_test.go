//go:build system

package rigs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/rigs"
)

// refuse applies packages that are refused, in noop too, with a text.
func refuse(t *testing.T, m *rigs.Machine, says string, entries ...string) {
	t.Helper()
	put(t, m, "/root/m.yaml", packages(entries...))
	for _, args := range [][]string{{"--noop"}, nil} {
		r := m.Run(append(append([]string{"muster", "apply"}, args...), "/root/m.yaml")...)
		if r.Code != 1 || !strings.Contains(r.Stderr, says) {
			t.Errorf("%q, %q: exit code %d, without %q\n%s", entries, args, r.Code, says, r.Stderr)
		}
	}
}

// TestScriptOfABatch installs a package with a failing %post, alone and together with others.
func TestScriptOfABatch(t *testing.T) {
	m := rigs.DNF(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	for _, entries := range [][]string{{"muster-post:"}, {"muster-post:", "muster-many0:"}, {"muster-many0:", "muster-post.noarch:", "muster-many1:"}} {
		m.Run("sh", "-c", "rpm -e --nodeps $(rpm -qa 'muster-*')")
		put(t, m, "/root/m.yaml", packages(entries...))
		r := m.Run("muster", "apply", "--json", "/root/m.yaml")
		for _, tx := range transactions(t, r.Stdout) {
			isBad := strings.HasPrefix(tx.Name, "muster-post")
			if tx.Failed != isBad || isBad && !strings.Contains(strings.Join(tx.Errors, ""), "%post(muster-post") || !isBad && !tx.Changed {
				t.Errorf("%q: %s is %s: %q", entries, tx.Name, tx.Outcome(), tx.Errors)
			}
		}
		if r.Code != 1 || strings.TrimSpace(m.Run("rpm", "-qa", "muster-post").Stdout) == "" {
			t.Errorf("%q: exit code %d\n%s", entries, r.Code, r.Stderr)
		}
		// Like a package that fails alone, it is installed, and the next run finds it so.
		apply(t, m, "/root/m.yaml")
	}
}

// TestHalfInstalledIsRemoved removes packages that dpkg wants to have reinstalled first.
func TestHalfInstalledIsRemoved(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	broken := func(more string) {
		r := m.Run("sh", "-euc", "dpkg -i /srv/repo/muster-test_1.0-1_all.deb /srv/repo/muster-many0_1.0_all.deb; "+more+
			"\nsed -i '/^Package: muster-test$/,/^$/s/^Status:.*/Status: install reinstreq half-installed/' /var/lib/dpkg/status")
		if r.Code != 0 {
			t.Fatal(r.Stderr)
		}
	}
	const gone = "mv /srv/repo /srv/gone; rm -r /var/lib/apt/lists; "
	for name, c := range map[string]struct{ setup, ensure, after string }{
		"absent":                     {"", "absent", "config-files"},
		"purged":                     {"", "purged", ""},
		"absent, without an archive": {gone, "absent", "config-files"},
		"purged, without an archive": {gone, "purged", ""},
	} {
		t.Run(name, func(t *testing.T) {
			broken(c.setup)
			defer m.Run("sh", "-c", "[ ! -e /srv/gone ] || mv /srv/gone /srv/repo; apt-get update; dpkg --purge muster-test muster-many0")
			put(t, m, "/root/m.yaml", packages("muster-test: {ensure: "+c.ensure+"}", "muster-many0: {ensure: absent}"))
			for _, tx := range apply(t, m, "--noop", "/root/m.yaml") {
				if !strings.Contains(tx.NoopMessage, "Would have ") {
					t.Errorf("noop: %+v", tx)
				}
			}
			if got := outcomes(apply(t, m, "/root/m.yaml")); !slices.Equal(got, []string{"muster-many0 changed", "muster-test changed"}) {
				t.Errorf("%q", got)
			}
			if got := m.Run("dpkg-query", "-W", "-f", "${db:Status-Status}", "muster-test").Stdout; got != c.after {
				t.Errorf("it is %q, not %q", got, c.after)
			}
			if got := outcomes(apply(t, m, "/root/m.yaml")); !slices.Equal(got, []string{"muster-many0 stable", "muster-test stable"}) {
				t.Errorf("the second time %q", got)
			}
		})
	}
	t.Run("another package", func(t *testing.T) {
		broken("mv /srv/repo/Packages /srv/P; sed '/^Package: muster-test$/,/^$/d' /srv/P > /srv/repo/Packages; rm /srv/repo/Release; apt-get update; ")
		refuse(t, m, "The package muster-test needs to be reinstalled, but I can't find an archive for it.: the package database needs repair: remove it with ensure: absent", "muster-many1:")
	})
}

// TestCausesOfDpkgAndRpm finds the line of dpkg or rpm in the errors of apt and dnf.
func TestCausesOfDpkgAndRpm(t *testing.T) {
	for name, c := range map[string]struct {
		machine func(testing.TB) *rigs.Machine
		setup   string
		entries []string
		says    []string
	}{
		"apt, another architecture": {rigs.Apt, `d=$(mktemp -d); mkdir $d/DEBIAN; chmod 755 $d; printf 'Package: muster-arch\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@e>\nDescription: t\n' > $d/DEBIAN/control
dpkg-deb -Znone -b $d /srv/repo/a.deb >/dev/null; dpkg-deb -f /srv/repo/a.deb > /root/fields; sed -i 's/: all/: i386/' $d/DEBIAN/control; dpkg-deb -Znone -b $d /srv/repo/a.deb >/dev/null
{ cat /root/fields; printf 'Filename: ./a.deb\nSize: %s\nSHA256: %s\n\n' $(stat -c %s /srv/repo/a.deb) $(sha256sum /srv/repo/a.deb | cut -d' ' -f1); } >> /srv/repo/Packages; rm /srv/repo/Release; apt-get update`,
			[]string{"muster-arch:"}, []string{"package architecture (i386) does not match system (amd64)"}},
		"apt, a file of another package": {rigs.Apt, `for n in muster-f1 muster-f2; do d=$(mktemp -d); mkdir -p $d/DEBIAN $d/opt; chmod 755 $d; echo $n > $d/opt/same; printf "Package: $n\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@e>\nDescription: t\n" > $d/DEBIAN/control
dpkg-deb -Znone -b $d /srv/repo/$n.deb >/dev/null; { dpkg-deb -f /srv/repo/$n.deb; printf "Filename: ./$n.deb\nSize: %s\nSHA256: %s\n\n" $(stat -c %s /srv/repo/$n.deb) $(sha256sum /srv/repo/$n.deb | cut -d' ' -f1); } >> /srv/repo/Packages; done; rm /srv/repo/Release; apt-get update; apt-get install -y muster-f1`,
			[]string{"muster-f2:", "muster-many0:"}, []string{"trying to overwrite '/opt/same', which is also in package muster-f1 1.0"}},
		"dnf, a file of another package": {rigs.DNF, rpmsOf("muster-f1 muster-f2", "same"), []string{"muster-f1:", "muster-f2:"}, []string{"file /opt/same/version from install of muster-f2-1.0-1.noarch conflicts with file from package muster-f1"}},
		"dnf, it cannot be unpacked":     {rigs.DNF, rpmsOf("muster-f1", "deep/er") + "touch /opt/deep", []string{"muster-f1:"}, []string{"failed to open dir deep of /opt/deep/er/: Not a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.machine(t)
			m.Copy(build(t), "/usr/local/bin/muster")
			if r := m.Run("sh", "-euc", c.setup); r.Code != 0 {
				t.Fatal(r.Stdout, r.Stderr)
			}
			put(t, m, "/root/m.yaml", packages(c.entries...))
			r := m.Run("muster", "apply", "--json", "/root/m.yaml")
			var errors string
			for _, tx := range transactions(t, r.Stdout) {
				errors += strings.Join(tx.Errors, "\n")
			}
			for _, says := range c.says {
				if first, _, _ := strings.Cut(errors, "\n"); !strings.Contains(first, says) {
					t.Errorf("nothing says %q:\n%s", says, errors)
				}
			}
		})
	}
}

// rpmsOf returns a script that adds packages to the repository, each with the same file.
func rpmsOf(names, dir string) string {
	return fmt.Sprintf(`for n in %s; do printf "Name: $n\nVersion: 1.0\nRelease: 1\nSummary: t\nLicense: none\nBuildArch: noarch\n%%%%description\nt\n%%%%install\nmkdir -p %%%%{buildroot}/opt/%s\necho $n > %%%%{buildroot}/opt/%s/version\n%%%%files\n/opt/%s/version\n" > /srv/build/$n.spec
rpmbuild -bb --quiet --define "_topdir /srv/build/top" --define "_rpmdir /srv/repo" /srv/build/$n.spec; done; createrepo_c -q /srv/repo; dnf -q makecache
`, names, dir, dir, dir)
}

// TestAbsentVirtualPackages does not call a name absent that an installed package provides.
func TestAbsentVirtualPackages(t *testing.T) {
	for name, machine := range map[string]func(testing.TB) *rigs.Machine{"apt": rigs.Apt, "dnf": rigs.DNF} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			m.Copy(build(t), "/usr/local/bin/muster")
			stable := func(entries ...string) {
				t.Helper()
				put(t, m, "/root/m.yaml", packages(entries...))
				for _, got := range outcomes(apply(t, m, "/root/m.yaml")) {
					if !strings.HasSuffix(got, " stable") {
						t.Errorf("%s", got)
					}
				}
			}
			stable("muster-virtual: {ensure: absent}", "muster-test: {ensure: purged}", "nosuch: {ensure: absent}")
			put(t, m, "/root/m.yaml", packages("muster-real:"))
			apply(t, m, "/root/m.yaml")
			refuse(t, m, "muster-virtual is a virtual package, provided by muster-real: name the provider to remove it", "muster-virtual: {ensure: absent}")
			refuse(t, m, "muster-virtual is a virtual package, provided by muster-real", "muster-virtual: {ensure: purged}", "nosuch: {ensure: absent}")
			if name == "apt" {
				refuse(t, m, "muster-real+, which apt would read as install muster-real: remove the +", "muster-real+: {ensure: absent}")
				refuse(t, m, "remove the +", "muster-many1+: {ensure: purged}")
				stable("g++: {ensure: absent}")
			}
			put(t, m, "/root/m.yaml", packages("muster-real: {ensure: purged}"))
			apply(t, m, "/root/m.yaml")
			stable("muster-virtual: {ensure: absent}", "muster-real: {ensure: absent}")
		})
	}
}

// TestNoopAsksWhatDNFNeeds predicts the failure of a run where dnf or its plugin does not work.
func TestNoopAsksWhatDNFNeeds(t *testing.T) {
	m := rigs.DNF(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	m.Run("dnf", "install", "-y", "-q", "muster-test-1.0-1")
	const plugin, modules = "/usr/lib/python3/dist-packages/dnf-plugins/versionlock.py", "/usr/lib/python3/dist-packages/dnf"
	m.Run("mv", plugin, "/root/")
	refuse(t, m, "a plugin of the package manager is missing: install python3-dnf-plugin-versionlock", "muster-test: {hold: true}")
	m.Run("mv", "/root/versionlock.py", plugin)
	m.Run("mv", modules, "/root/")
	refuse(t, m, "No module named 'dnf'", "muster-many0:")
	refuse(t, m, "No module named 'dnf'", "muster-test: {ensure: absent}", "muster-many0:")
	refuse(t, m, "No module named 'dnf'", "muster-test: {hold: true}")
	m.Run("mv", "/root/dnf", modules)
	put(t, m, "/root/m.yaml", packages("muster-test: {hold: true}", "muster-many0:"))
	apply(t, m, "--noop", "/root/m.yaml")
	if got := outcomes(apply(t, m, "/root/m.yaml")); !slices.Equal(got, []string{"muster-many0 changed", "muster-test changed"}) {
		t.Errorf("%q", got)
	}
}

// TestOneBadNameAmongTen counts the simulations of a run and of noop.
func TestOneBadNameAmongTen(t *testing.T) {
	m := rigs.Apt(t)
	m.Copy(build(t), "/usr/local/bin/muster")
	traced(t, m, "apt-get")
	for _, bad := range []string{"no-such-package:", "muster-test: {ensure: '9.9'}", "muster-virtual:", "muster-only:", "muster-nosuch++:", "muster-test+:"} {
		for at := range 10 {
			if at%4 != 1 {
				continue
			}
			var ten []string
			for i := range 9 {
				ten = append(ten, fmt.Sprintf("muster-many%d:", i))
			}
			put(t, m, "/root/ten.yaml", packages(slices.Insert(ten, at, bad)...))
			m.Run("/usr/bin/dpkg", "--purge", "muster-many0", "muster-many1", "muster-many2", "muster-many3", "muster-many4", "muster-many5", "muster-many6", "muster-many7", "muster-many8")
			for _, args := range [][]string{{"--noop"}, nil} {
				calls(m)
				r := m.Run(append(append([]string{"muster", "apply", "--json"}, args...), "/root/ten.yaml")...)
				got := calls(m)
				if n := count(got, "apt-get -s"); args == nil && r.Code != 1 || n != 2 || count(outcomes(transactions(t, r.Stdout)), "muster-many0 failed") > 0 {
					t.Errorf("%s at %d, %q: exit code %d, %d simulations: %q\n%s", bad, at, args, r.Code, n, got, r.Stderr)
				}
			}
		}
	}
}
