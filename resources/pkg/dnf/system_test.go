//go:build system

package dnf_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/dnf"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/pkgtest"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/typetest"
)

// clean removes all packages of the repository and all version locks.
const clean = "rpm -e --nodeps $(rpm -qa 'muster-*') > /dev/null 2>&1 || true\n: > /etc/dnf/plugins/versionlock.list\n"

// with makes a machine that has only the packages of the repository that rpm installs with install.
func with(install string) func(*testing.T, string) {
	script := clean
	if install != "" {
		script += "rpm -i --nodeps /srv/repo/noarch/" + install + ".noarch.rpm\n"
	}

	return func(t *testing.T, _ string) {
		t.Helper()
		pkgtest.Sh(t, script)
	}
}

// is checks what rpm says in the end.
func is(name, want string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		if got := pkgtest.Sh(t, "rpm -q --queryformat '%{EPOCH}:%{VERSION}-%{RELEASE}' "+name+" || true"); !strings.Contains(got, want) {
			t.Errorf("rpm says %q, not %q", got, want)
		}
	}
}

// decisions are the rows of the decision table, and the meaning of a version without its release and
// with its epoch. File names of rpm have no epoch.
func decisions() []typetest.Case {
	const epoch, newest, middle, oldest, none = "muster-test-0.9-1", "muster-test-2.0-1", "muster-test-1.0-1", "muster-test-1.0~rc1-1", ""
	row := func(ensure, have, message, after string) typetest.Case {
		return typetest.Case{Name: ensure + ", " + have, Properties: pkgtest.Properties("muster-test", ensure), Setup: with(have), Message: message, Check: is("muster-test", after)}
	}

	return []typetest.Case{
		row("present", middle, "", "0:1.0-1"),
		row("present", none, "Would have installed", "1:0.9-1"),
		row("absent", none, "", "not installed"),
		row("absent", middle, "Would have uninstalled", "not installed"),
		row("latest", none, "Would have installed latest", "1:0.9-1"),
		row("latest", middle, "Would have upgraded to latest", "1:0.9-1"),
		row("latest", epoch, "", "1:0.9-1"),
		row("1.0-1", middle, "", "0:1.0-1"),
		row("1.0-1", oldest, "Would have upgraded to 1.0-1", "0:1.0-1"),
		row("1.0-1", newest, "Would have downgraded to 1.0-1", "0:1.0-1"),
		row("1.0~rc1-1", none, "Would have installed version 1.0~rc1-1", "0:1.0~rc1-1"),
		row("1.0", middle, "", "0:1.0-1"),
		row("2.0", middle, "Would have upgraded to 2.0", "0:2.0-1"),
		row("1.0", newest, "Would have downgraded to 1.0", "0:1.0-1"),
		row("0.9-1", epoch, "", "1:0.9-1"),
		row("1:0.9-1", epoch, "", "1:0.9-1"),
		row("1:0.9", epoch, "", "1:0.9-1"),
		row("1:0.9-1", newest, "Would have upgraded to 1:0.9-1", "1:0.9-1"),
		row("0:2.0-1", epoch, "Would have downgraded to 0:2.0-1", "0:2.0-1"),
		row("2.0-1", epoch, "Would have upgraded to 2.0-1", "0:2.0-1"),
		row("0.9-1", middle, "Would have downgraded to 0.9-1", "1:0.9-1"),
		{Name: "with its architecture", Setup: with(none), Properties: pkgtest.Properties("muster-test.noarch", "1.0"), Message: "Would have installed version 1.0", Check: is("muster-test", "0:1.0-1")},
		{Name: "a name with a version, absent", Setup: with(middle), Properties: pkgtest.Properties("muster-test-1.0-1", "absent"), Error: "muster-test-1.0-1 is version 1.0-1 of the package muster-test: use the name muster-test", Check: is("muster-test", "0:1.0-1")},
		{Name: "a name with a version and an architecture, absent", Setup: with(middle), Properties: pkgtest.Properties("muster-test-1.0-1.noarch", "absent"), Error: "is version 1.0-1 of the package muster-test", Check: is("muster-test", "0:1.0-1")},
		{
			Name: "the newest of several", Properties: pkgtest.Properties("muster-test", "2.0-1"), Check: is("muster-test", "0:2.0-1"),
			Setup: func(t *testing.T, dir string) {
				with(middle)(t, dir)
				pkgtest.Sh(t, "rpm -i --force /srv/repo/noarch/muster-test-2.0-1.noarch.rpm")
			},
		},
	}
}

// locks are the rows of hold.
func locks() []typetest.Case {
	const middle, any, list = "muster-test-1.0-1", "muster-test-0:1.0-1.*", "/etc/dnf/plugins/versionlock.list"
	row := func(name, ensure string, hold bool, setup func(*testing.T, string), message, after, entries string) typetest.Case {
		return typetest.Case{
			Name: name, Setup: setup, Message: message,
			Properties: func(string) typetest.Properties {
				return typetest.Properties{"name": "muster-test", "ensure": ensure, "hold": hold}
			},
			Check: func(t *testing.T, dir string) {
				t.Helper()
				is("muster-test", after)(t, dir)
				if got := pkgtest.Sh(t, "sed '/^#/d; /^$/d' "+list); got != entries {
					t.Errorf("locked is %q, not %q", got, entries)
				}
			},
		}
	}
	locked := func(installed string, more ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			with(installed)(t, dir)
			pkgtest.Sh(t, strings.Join(append([]string{"echo '" + any + "' > " + list}, more...), "\n"))
		}
	}
	upgrade := row("hold, and others upgrade", "present", true, with(middle), "Would have held", "0:1.0-1", any)
	check := upgrade.Check
	upgrade.Check = func(t *testing.T, dir string) {
		t.Helper()
		pkgtest.Sh(t, "dnf -y upgrade")
		check(t, dir)
	}

	return []typetest.Case{
		upgrade,
		row("hold, it is", "present", true, locked(middle), "", "0:1.0-1", any),
		row("hold what is locked without its epoch", "present", true, locked(middle, "echo muster-test-1.0 > "+list), "", "0:1.0-1", "muster-test-1.0"),
		row("hold what is locked at another version", "present", true, locked(middle, "rpm -U /srv/repo/noarch/muster-test-2.0-1.noarch.rpm"), "Would have held", "0:2.0-1", "muster-test-0:2.0-1.*"),
		row("hold another version", "latest", true, locked(middle), "Would have upgraded to latest. Would have held", "1:0.9-1", "muster-test-1:0.9-1.*"),
		row("hold a new one", "1.0-1", true, with(""), "Would have installed version 1.0-1. Would have held", "0:1.0-1", any),
		row("hold a new one that was locked", "2.0-1", true, locked(middle, "rpm -e muster-test"), "Would have installed version 2.0-1. Would have held", "0:2.0-1", "muster-test-0:2.0-1.*"),
		row("release", "present", false, locked(middle), "Would have released", "0:1.0-1", ""),
		row("release, it is", "present", false, with(middle), "", "0:1.0-1", ""),
		row("release and remove", "absent", false, locked(middle), "Would have uninstalled. Would have released", "not installed", ""),
		row("release one of two", "present", false, locked(middle, "rpm -i /srv/repo/noarch/muster-lib-1.0-1.noarch.rpm; echo 'muster-lib-0:1.0-1.*' >> "+list), "Would have released", "0:1.0-1", "muster-lib-0:1.0-1.*"),
		{Name: "locked, absent", Setup: locked(middle), Properties: pkgtest.Properties("muster-test", "absent"), Message: "Would have uninstalled", Check: is("muster-test", "not installed")},
		{Name: "locked, latest", Setup: locked(middle), Properties: pkgtest.Properties("muster-test", "latest"), Error: "the package is held: muster-test is 1.0-1; release it with `dnf versionlock delete muster-test`"},
		{Name: "locked, another version", Setup: locked(middle), Properties: pkgtest.Properties("muster-test", "2.0"), Error: "dnf versionlock delete"},
		{Name: "locked and as it should be", Setup: locked(middle), Properties: pkgtest.Properties("muster-test", "1.0")},
	}
}

func facts() model.Facts {
	return model.Facts{"host": map[string]any{"info": map[string]any{"platformFamily": "fedora"}}}
}

func TestContract(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	pkgtest.Sh(t, "dnf -q makecache")
	typetest.Run(t, typetest.Config{Type: pkg.New(dnf.New()), Facts: facts(), ReadOnly: typetest.Only("rpm -q ", "dnf -C repoquery ", "dnf -C install --assumeno ", "dnf -C downgrade --assumeno ", "dnf -C remove --assumeno ", "dnf -C -q repoquery ", "dnf --disablerepo=* -C versionlock list"), Lie: pkgtest.Lie, Cases: decisions()})
}

// TestContractOfLocks covers hold, which calls dnf more often.
func TestContractOfLocks(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	pkgtest.Sh(t, "dnf -q makecache")
	typetest.Run(t, typetest.Config{Type: pkg.New(dnf.New()), Facts: facts(), ReadOnly: typetest.Only("rpm -q ", "dnf -C repoquery ", "dnf -C install --assumeno ", "dnf -C downgrade --assumeno ", "dnf -C remove --assumeno ", "dnf -C -q repoquery ", "dnf --disablerepo=* -C versionlock list"), Lie: pkgtest.Lie, Cases: locks()})
}

// TestErrors checks the remedies for errors of dnf.
func TestErrors(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	for name, c := range map[string]struct {
		setup, pkg, version string
		err                 error
		says                string
	}{
		"no such version":           {pkg: "muster-test", version: "9.9", err: pkg.ErrNoVersion, says: "dnf list --showduplicates"},
		"a name with a version":     {pkg: "muster-test-1.0", version: "present", err: pkg.ErrNoPackage, says: "dnf would install muster-test for muster-test-1.0: there is no such package: name the package itself, with its version in ensure"},
		"a version is installed":    {setup: "rpm -i /srv/repo/noarch/muster-test-1.0-1.noarch.rpm", pkg: "muster-test-1.0-1", version: "present", err: pkg.ErrNoPackage, says: "dnf would install muster-test-1.0-1.noarch for muster-test-1.0-1: there is no such package: name the package itself"},
		"what another one provides": {pkg: "muster-virtual", version: "present", err: pkg.ErrNoPackage, says: "dnf would install muster-real"},
		"its script fails":          {pkg: "muster-bad", version: "present", err: pkg.ErrScript, says: "scriptlet failed, exit status 3: a script of a package failed: fix"},
		"what its script said":      {pkg: "muster-bad2", version: "1.0", err: pkg.ErrScript, says: "nor does this\nerror: %prein(muster-bad2"},
		"a script after it fails":   {pkg: "muster-post", version: "present", err: pkg.ErrScript, says: "it is not set up\nwarning: %post(muster-post"},
		"no key":                    {setup: "sed -i s/gpgcheck=0/gpgcheck=1/ /etc/yum.repos.d/muster.repo", pkg: "muster-real", version: "present", err: pkg.ErrKey, says: "the signature cannot be verified: name the key"},
		"no repository":             {setup: "sed -i s,file:/,file:///gone, /etc/yum.repos.d/muster.repo; rm -rf /var/cache/dnf", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "Failed to download metadata"},
		"a repository is ignored":   {setup: "echo skip_if_unavailable=1 >> /etc/yum.repos.d/muster.repo; sed -i s,file:/,file:///gone, /etc/yum.repos.d/muster.repo; rm -rf /var/cache/dnf", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "Failed to download metadata"},
		"no such package":           {pkg: "no-such-package", version: "present", err: pkg.ErrNoPackage, says: "check its name"},
		"a dependency is not there": {pkg: "muster-needs", version: "present", err: pkg.ErrUnmet, says: "no-such-thing"},
		"excluded":                  {setup: "echo exclude=muster-real >> /etc/yum.repos.d/muster.repo", pkg: "muster-real", version: "present", err: pkg.ErrHeld, says: "versionlock"},
		"locked":                    {setup: "rpm -i /srv/repo/noarch/muster-test-1.0-1.noarch.rpm; dnf -q versionlock add muster-test", pkg: "muster-test", version: "2.0-1", err: pkg.ErrHeld, says: "filtered out by exclude filtering for argument: muster-test-2.0-1"},
		"the archive is gone":       {setup: "dnf -q makecache; mv /srv/repo/noarch/muster-real-1.0-1.noarch.rpm /srv/gone", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "muster-real"},
	} {
		t.Run(name, func(t *testing.T) {
			with("")(t, "")
			pkgtest.Sh(t, "sed -i /^exclude/d /etc/yum.repos.d/muster.repo; "+c.setup)
			err := pkgtest.Install(t.Context(), pkgtest.Env(t), dnf.New(), c.pkg, c.version)
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("the error is %v, not %v with %q", err, c.err, c.says)
			}
			pkgtest.Sh(t, "sed -i '/^skip/d; s/gpgcheck=1/gpgcheck=0/; s,file:///gone,file:/,' /etc/yum.repos.d/muster.repo; [ ! -e /srv/gone ] || mv /srv/gone /srv/repo/noarch/muster-real-1.0-1.noarch.rpm")
		})
	}
	t.Run("excluded and to be removed", func(t *testing.T) {
		with("muster-real-1.0-1")(t, "")
		pkgtest.Sh(t, "sed -i /^exclude/d /etc/yum.repos.d/muster.repo; echo exclude=muster-real >> /etc/dnf/dnf.conf")
		if err := dnf.New().ChangeAll(t.Context(), pkgtest.Env(t), []pkg.Request{{Action: pkg.Uninstall, Name: "muster-real"}}); !errors.Is(err, pkg.ErrHeld) || !strings.Contains(err.Error(), "remove it from exclude") {
			t.Errorf("the error is %v", err)
		}
		pkgtest.Sh(t, "sed -i /^exclude/d /etc/dnf/dnf.conf")
	})
	t.Run("nothing lower", func(t *testing.T) {
		with("muster-test-1.0~rc1-1")(t, "")
		if err := dnf.New().ChangeAll(t.Context(), pkgtest.Env(t), []pkg.Request{{Action: pkg.Downgrade, Name: "muster-test", Version: "0.1"}}); !errors.Is(err, pkg.ErrNoVersion) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a damaged database is not an absent package", func(t *testing.T) {
		with("muster-test-1.0-1")(t, "")
		pkgtest.Sh(t, "cp -r /var/lib/rpm /srv/rpm; rm -f /var/lib/rpm/rpmdb.sqlite-*; echo garbage > /var/lib/rpm/rpmdb.sqlite")
		states, err := dnf.New().StatusAll(t.Context(), pkgtest.Env(t), []string{"muster-test"})
		if !errors.Is(err, pkg.ErrBroken) || !strings.Contains(err.Error(), "rpm --rebuilddb") {
			t.Errorf("the error is %v, the states %+v", err, states)
		}
		pkgtest.Sh(t, "rm -r /var/lib/rpm; mv /srv/rpm /var/lib/rpm")
	})
}

// TestHoldNeedsItsPlugin names the package of the plugin when that is not there.
func TestHoldNeedsItsPlugin(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	with("muster-test-1.0-1")(t, "")
	for name, setup := range map[string]string{
		"not installed": "mv /etc/dnf/plugins/versionlock.conf /root",
		"disabled":      "sed -i s/^enabled.*/enabled=0/ /etc/dnf/plugins/versionlock.conf",
		"no program":    "mv /usr/lib/python3/dist-packages/dnf-plugins/versionlock.py /root",
	} {
		t.Run(name, func(t *testing.T) {
			pkgtest.Sh(t, "cp -a /etc/dnf/plugins/versionlock.conf /root/kept; "+setup)
			err := dnf.New().ChangeAll(t.Context(), pkgtest.Env(t), []pkg.Request{{Action: pkg.Hold, Name: "muster-test", Version: "present"}})
			if !errors.Is(err, pkg.ErrPlugin) || !strings.Contains(err.Error(), "install python3-dnf-plugin-versionlock") {
				t.Errorf("the error is %v", err)
			}
			states, err := dnf.New().StatusAll(t.Context(), pkgtest.Env(t), []string{"muster-test"})
			if err != nil || states[0].Held || (states[0].CannotHold == nil) != (name == "no program") {
				t.Errorf("%+v, %v", states, err)
			}
			pkgtest.Sh(t, "mv /root/kept /etc/dnf/plugins/versionlock.conf; [ ! -e /root/versionlock.py ] || mv /root/versionlock.py /usr/lib/python3/dist-packages/dnf-plugins/")
		})
	}
}

// TestSimulate finds what goes along, and changes nothing.
func TestSimulate(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	pkgtest.Sh(t, "dnf -q makecache")
	with("muster-lib-1.0-1")(t, "")
	pkgtest.Sh(t, "rpm -i --nodeps /srv/repo/noarch/muster-tool-1.0-1.noarch.rpm; echo exclude=muster-many0 >> /etc/yum.repos.d/muster.repo")
	for name, c := range map[string]struct {
		requests []pkg.Request
		want     string
		err      error
	}{
		"depends on it":      {requests: []pkg.Request{{Action: pkg.Uninstall, Name: "muster-lib"}}, want: "muster-tool 1.0-1"},
		"both are asked for": {requests: []pkg.Request{{Action: pkg.Uninstall, Name: "muster-lib"}, {Action: pkg.Uninstall, Name: "muster-tool.noarch"}}},
		"nothing":            {requests: []pkg.Request{{Action: pkg.Install, Name: "muster-many1", Version: "1.0"}}},
		"excluded":           {requests: []pkg.Request{{Action: pkg.Install, Name: "muster-many0", Version: "present"}}, err: pkg.ErrHeld},
		"no such version":    {requests: []pkg.Request{{Action: pkg.Install, Name: "muster-many1", Version: "7"}}, err: pkg.ErrNoVersion},
		"no such package":    {requests: []pkg.Request{{Action: pkg.Install, Name: "muster-many1", Version: "present"}, {Action: pkg.Install, Name: "nosuch", Version: "present"}}, err: pkg.ErrNoPackage},
	} {
		var got []string
		removed, err := dnf.New().Simulate(t.Context(), pkgtest.Env(t), c.requests)
		for _, p := range removed {
			got = append(got, p.Names[0]+" "+p.Version)
		}
		if !errors.Is(err, c.err) || c.err == nil && err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	is("muster-tool", "0:1.0-1")(t, "")
}

// TestNotBrokenOff ends the time of a change that rpm is in the middle of.
func TestNotBrokenOff(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	with("")(t, "")
	pkgtest.NotBrokenOff(t, dnf.New())
	is("muster-slow", "1.0-1")(t, "")
}

// other is a process that dnf finds by the file that another dnf writes.
func other(path string) func(testing.TB) (release func()) {
	return func(t testing.TB) func() {
		t.Helper()
		// A process of our own: dnf looks whether there is one.
		if err := os.WriteFile(path, fmt.Append(nil, os.Getpid()), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		return func() { _ = os.Remove(path) }
	}
}

// TestLocks covers dnf's locks and rpm's.
func TestLocks(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	waiting := func(timeout time.Duration) *dnf.Provider {
		p := dnf.New()
		p.LockTimeout = timeout
		return p
	}
	dnfs := other("/var/cache/dnf/metadata_lock.pid")
	pkgtest.Locks{
		Hold:  map[string]func(testing.TB) func(){"dnf": dnfs, "rpm": pkgtest.Lock("/var/lib/rpm/.rpm.lock")},
		Clean: func(t testing.TB, _ resource.Env) { pkgtest.Sh(t, clean) },
		Do: func(ctx context.Context, env resource.Env, timeout time.Duration) error {
			return pkgtest.Install(ctx, env, waiting(timeout), "muster-real", "present")
		},
		Done: func(t testing.TB, _ resource.Env) bool {
			return pkgtest.Sh(t, "rpm -q muster-real || true") == "muster-real-1.0-1.noarch"
		},
	}.Test(t)
	pkgtest.Locks{
		Hold:  map[string]func(testing.TB) func(){"lists": dnfs},
		Clean: pkgtest.NoLists("dnf"),
		Do: func(ctx context.Context, env resource.Env, timeout time.Duration) error {
			return waiting(timeout).Refresh(ctx, env, time.Nanosecond, true)
		},
		Done: pkgtest.HasLists("dnf"),
	}.Test(t)
	asked := false
	pkgtest.Locks{
		Hold:  map[string]func(testing.TB) func(){"candidates": dnfs},
		Clean: func(testing.TB, resource.Env) { asked = false },
		Do: func(ctx context.Context, env resource.Env, timeout time.Duration) error {
			_, err := waiting(timeout).Candidates(ctx, env, []string{"muster-real"}, "")
			asked = err == nil
			return err
		},
		Done: func(testing.TB, resource.Env) bool { return asked },
	}.Test(t)
}

// TestTogether changes packages in every way at once, and refreshes the lists.
func TestTogether(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	with("muster-test-2.0-1")(t, "")
	pkgtest.Sh(t, "rpm -i /srv/repo/noarch/muster-many0-1.0-1.noarch.rpm")
	e := pkgtest.Env(t)
	if err := os.MkdirAll(e.Host.StateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	p := dnf.New()
	for _, maxAge := range []time.Duration{0, time.Hour, time.Hour} {
		if err := p.Refresh(t.Context(), e, maxAge, true); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := pkg.Refreshed(e, "dnf"); err != nil || at.IsZero() {
		t.Errorf("the refresh is not recorded: %v, %v", at, err)
	}
	candidates, err := p.Candidates(t.Context(), e, []string{"muster-test", "muster-many0", "no-such-package"}, "")
	if err != nil || candidates["muster-test"] != "1:0.9-1" || candidates["muster-many0"] != "0:1.0-1" || len(candidates) != 2 {
		t.Errorf("the candidates are %v, %v", candidates, err)
	}
	err = p.ChangeAll(t.Context(), e, []pkg.Request{
		{Action: pkg.Downgrade, Name: "muster-test", Version: "1.0"},
		{Action: pkg.Uninstall, Name: "muster-many0"},
		{Action: pkg.Install, Name: "muster-many1", Version: pkg.EnsureLatest},
		{Action: pkg.Install, Name: "muster-many2", Version: "present"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(pkgtest.Sh(t, "rpm -qa 'muster-*' | sort"), "\n")
	if want := []string{"muster-many1-1.0-1.noarch", "muster-many2-1.0-1.noarch", "muster-test-1.0-1.noarch"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	pkgtest.Sh(t, "printf '[bad]\\nname=bad\\nbaseurl=file:///none\\nskip_if_unavailable=1\\n' > /etc/yum.repos.d/bad.repo")
	if err := p.Refresh(t.Context(), e, time.Nanosecond, true); !errors.Is(err, pkg.ErrDownload) || !strings.Contains(err.Error(), "Ignoring repositories: bad") {
		t.Errorf("of a repository that dnf does without the error is %v", err)
	}
	pkgtest.Sh(t, "rm /etc/yum.repos.d/bad.repo; mv /srv/repo/repodata /srv/repodata; rm -r /var/cache/dnf; echo skip_if_unavailable=0 >> /etc/yum.repos.d/muster.repo")
	if err := p.Refresh(t.Context(), e, time.Nanosecond, true); !errors.Is(err, pkg.ErrDownload) {
		t.Errorf("the error is %v", err)
	}
}

// TestOrderIsThatOfRpm compares generated pairs of versions with what rpm says,
// apart from those that it takes for equal.
func TestOrderIsThatOfRpm(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	generate := func(random *rand.Rand) (a, b string) {
		epoch, version, release := generated(random)
		a = epoch + ":" + version + "-" + release
		switch {
		case random.IntN(8) == 0:
			return a, a
		case random.IntN(2) == 0:
			at := random.IntN(len(version)) + 1
			version = version[:at] + []string{"~", "^", ".", "1", "0", "a", "~1", "^1"}[random.IntN(8)] + version[at:]
		default:
			epoch, version, release = generated(random)
		}
		return a, epoch + ":" + version + "-" + release
	}
	const ask = `
import re, rpm, sys
n = 0
for line in sys.stdin:
    a, b, order = line.split()
    want = rpm.labelCompare(*(tuple(re.split("[:-]", v)) for v in (a, b)))
    if want != int(order) and want != 0: print(line, want)
    n += 1
print(n)`
	pkgtest.Agrees(t, dnf.New(), generate, "python3", "-c", ask)
}

func generated(random *rand.Rand) (epoch, version, release string) {
	version = pkgtest.Text(random, "12", 1) + pkgtest.Text(random, "00119..~^_+abAB", 6)

	return pkgtest.Text(random, "001", 1), version, pkgtest.Text(random, "01.~^a", 3)
}
