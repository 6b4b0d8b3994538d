//go:build system

package apt_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/pkgtest"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/typetest"
)

// clean removes all packages of the repository.
const clean = `rm -f /root/fixed
dpkg --purge --force-all $(dpkg-query -W -f '${Package}\n' 'muster*' | sort) > /dev/null 2>&1 || true
INSTALL() { for p; do dpkg --install /srv/repo/$(echo $p | sed "s/=/_/; s/:/%3a/")_all.deb; done; }
`

func with(script string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		pkgtest.Sh(t, clean+script)
	}
}

// is checks what dpkg says in the end.
func is(name, want string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		got := pkgtest.Sh(t, "dpkg-query -W -f '${db:Status-Status} ${Version}' "+name+" 2>/dev/null || echo unknown")
		if got != want {
			t.Errorf("dpkg says %q, not %q", got, want)
		}
	}
}

// decisions are the rows of the decision table.
func decisions() []typetest.Case {
	const newest, middle, oldest = "1:0.9-1", "1.0-1", "1.0~rc1-1"
	row := func(ensure, have, message, after string) typetest.Case {
		c := typetest.Case{Name: ensure + ", " + have, Properties: pkgtest.Properties("muster-test", ensure), Setup: with(""), Message: message, Check: is("muster-test", after)}
		if have != "absent" {
			c.Setup = with("INSTALL muster-test=" + have)
		}
		return c
	}

	return []typetest.Case{
		row("present", middle, "", "installed "+middle),
		row("present", "absent", "Would have installed", "installed "+newest),
		row("absent", "absent", "", "unknown"),
		row("absent", middle, "Would have uninstalled", "config-files "+middle),
		row("latest", "absent", "Would have installed latest", "installed "+newest),
		row("latest", middle, "Would have upgraded to latest", "installed "+newest),
		row("latest", newest, "", "installed "+newest),
		row(middle, middle, "", "installed "+middle),
		row(middle, oldest, "Would have upgraded to "+middle, "installed "+middle),
		row(newest, middle, "Would have upgraded to "+newest, "installed "+newest),
		row(middle, newest, "Would have downgraded to "+middle, "installed "+middle),
		row(oldest, "absent", "Would have installed version "+oldest, "installed "+oldest),
	}
}

// states are the rows of the table of package states. A package that is neither absent nor installed is
// broken.
func states() []typetest.Case {
	row := func(status, message, after string, setup func(*testing.T, string)) typetest.Case {
		return typetest.Case{Name: status, Setup: setup, Properties: pkgtest.Properties("muster-test", "present"), Message: message, Check: is("muster-test", after)}
	}
	const install, configure, newest, middle = "Would have installed", "Would have configured", "installed 1:0.9-1", "installed 1.0-1"
	forged := func(status string) func(*testing.T, string) {
		return with("INSTALL muster-test=1.0-1; sed -i '/^Package: muster-test$/,/^$/s/^Status:.*/Status: install " + status + "/' /var/lib/dpkg/status")
	}

	return []typetest.Case{
		row("installed", "", middle, with("INSTALL muster-test=1.0-1")),
		row("config-files", install, newest, with("INSTALL muster-test=1.0-1; dpkg --remove muster-test")),
		row("half-installed", "Would have reinstalled", newest, forged("reinstreq half-installed")),
		row("half-configured", configure, middle, forged("ok half-configured")),
		row("unpacked", configure, middle, with("dpkg --unpack /srv/repo/muster-test_1.0-1_all.deb")),
		row("not-installed", install, newest, with("")),
		{Name: "absent, unpacked", Setup: with("dpkg --unpack /srv/repo/muster-test_1.0-1_all.deb"), Properties: pkgtest.Properties("muster-test", "absent"), Message: "Would have uninstalled", Check: is("muster-test", "config-files 1.0-1")},
		{Name: "absent, half-configured", Setup: forged("ok half-configured"), Properties: pkgtest.Properties("muster-test", "absent"), Message: "Would have uninstalled", Check: is("muster-test", "config-files 1.0-1")},
		{Name: "another version, half-configured", Setup: forged("ok half-configured"), Properties: pkgtest.Properties("muster-test", "1:0.9-1"), Message: "Would have upgraded to 1:0.9-1", Check: is("muster-test", newest)},
		{Name: "a name that one provides, absent", Setup: with("INSTALL muster-sole=1.0"), Properties: pkgtest.Properties("muster-only", "absent"), Error: "muster-only is a virtual package, provided by muster-sole: name the provider to remove it", Check: is("muster-sole", "installed 1.0")},
		{Name: "a name with an extra + and an architecture, absent", Setup: with("INSTALL muster-test=1.0-1"), Properties: pkgtest.Properties("muster-test+:all", "absent"), Error: "muster-test+:all, which apt would read as install muster-test: remove the +", Check: is("muster-test", "installed 1.0-1")},
		{Name: "half-installed, absent", Setup: forged("reinstreq half-installed"), Properties: pkgtest.Properties("muster-test", "absent"), Message: "Would have uninstalled", Check: is("muster-test", "config-files 1.0-1")},
		{Name: "purged", Setup: with("INSTALL muster-test=1.0-1"), Properties: pkgtest.Properties("muster-test", "purged"), Message: "Would have purged", Check: is("muster-test", "unknown")},
		{Name: "purged, config-files", Setup: with("INSTALL muster-test=1.0-1; dpkg --remove muster-test"), Properties: pkgtest.Properties("muster-test", "purged"), Message: "Would have purged", Check: is("muster-test", "unknown")},
		{Name: "purged, it is", Setup: with(""), Properties: pkgtest.Properties("muster-test", "purged"), Check: is("muster-test", "unknown")},
		{Name: "hold", Setup: with("INSTALL muster-test=1.0-1"), Properties: more("muster-test", "present", "hold", true), Message: "Would have held", Check: held("muster-test", "1.0-1", true)},
		{Name: "hold, it is", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: more("muster-test", "present", "hold", true), Check: held("muster-test", "1.0-1", true)},
		{Name: "hold another version", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: more("muster-test", "latest", "hold", true), Message: "Would have upgraded to latest. Would have held", Check: held("muster-test", "1:0.9-1", true)},
		{Name: "hold a new one", Setup: with(""), Properties: more("muster-test", "1.0-1", "hold", true), Message: "Would have installed version 1.0-1. Would have held", Check: held("muster-test", "1.0-1", true)},
		{Name: "release", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: more("muster-test", "present", "hold", false), Message: "Would have released", Check: held("muster-test", "1.0-1", false)},
		{Name: "release and remove", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: more("muster-test", "absent", "hold", false), Message: "Would have uninstalled. Would have released", Check: is("muster-test", "config-files 1.0-1")},
		{Name: "a name that ends with a plus", Setup: with(""), Properties: pkgtest.Properties("muster-g++", "present"), Message: "Would have installed", Check: is("muster-g++", "installed 1.0")},
		{Name: "a name that ends with a plus, absent", Setup: with("INSTALL muster-g++=1.0 muster-g=1.0"), Properties: pkgtest.Properties("muster-g++", "absent"), Message: "Would have uninstalled", Check: is("muster-g", "installed 1.0")},
		{Name: "a name that ends with a plus, held", Setup: with("INSTALL muster-g++=1.0"), Properties: more("muster-g++", "present", "hold", true), Message: "Would have held", Check: held("muster-g++", "1.0", true)},
		{Name: "without what it recommends", Setup: with(""), Properties: more("muster-asks", "present", "recommends", false), Message: "Would have installed", Check: is("muster-many9", "not-installed")},
		{Name: "with what it recommends", Setup: with(""), Properties: more("muster-asks", "present", "recommends", true), Message: "Would have installed", Check: is("muster-many9", "installed 1.0")},
		{Name: "from a release", Setup: with(""), Properties: more("muster-next", "present", "target_release", "next"), Message: "Would have installed", Check: is("muster-next", "installed 2.0")},
		{Name: "the latest of a release", Setup: with("INSTALL muster-next=1.0"), Properties: more("muster-next", "latest", "target_release", "next"), Message: "Would have upgraded to latest", Check: is("muster-next", "installed 2.0")},
		{Name: "the latest of no release", Setup: with("INSTALL muster-next=1.0"), Properties: pkgtest.Properties("muster-next", "latest"), Check: is("muster-next", "installed 1.0")},
		{Name: "absent, config-files", Setup: with("INSTALL muster-test=1.0-1; dpkg --remove muster-test"), Properties: pkgtest.Properties("muster-test", "absent"), Check: is("muster-test", "config-files 1.0-1")},
		{Name: "held", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: pkgtest.Properties("muster-test", "latest"), Error: "the package is held: muster-test is 1.0-1; release it with `apt-mark unhold muster-test`"},
		{Name: "held, absent", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: pkgtest.Properties("muster-test", "absent"), Error: "apt-mark unhold"},
		{Name: "held and as it should be", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: pkgtest.Properties("muster-test", "present")},
		{
			Name: "a changed configuration file is kept", Properties: pkgtest.Properties("muster-test", "latest"), Message: "Would have upgraded to latest",
			Setup: with("INSTALL muster-test=1.0-1; echo mine > /etc/muster-test/c.conf"),
			Check: func(t *testing.T, _ string) {
				if got := pkgtest.Sh(t, "cat /etc/muster-test/c.conf"); got != "mine" {
					t.Errorf("the file holds %q", got)
				}
			},
		},
		{Name: "latest, in no repository", Setup: with(""), Properties: pkgtest.Properties("tzdata", "latest")},
		{Name: "with its architecture, latest", Setup: with("INSTALL muster-test=1.0-1"), Properties: pkgtest.Properties("muster-test:all", "latest"), Message: "Would have upgraded to latest", Check: is("muster-test", "installed 1:0.9-1")},
		{Name: "with the machine's architecture, absent", Setup: with("INSTALL muster-test=1.0-1"), Properties: pkgtest.Properties("muster-test:amd64", "absent"), Message: "Would have uninstalled", Check: is("muster-test", "config-files 1.0-1")},
		{Name: "with the machine's architecture", Setup: with(""), Properties: pkgtest.Properties("muster-test:amd64", "present"), Message: "Would have installed", Check: is("muster-test", "installed 1:0.9-1")},
		{Name: "an epoch of 0", Setup: with(""), Properties: pkgtest.Properties("muster-test", "0:1.0-1"), Message: "Would have installed version 0:1.0-1", Check: is("muster-test", "installed 1.0-1")},
		{Name: "with its architecture", Setup: with(""), Properties: pkgtest.Properties("muster-test:all", "1.0-1"), Message: "Would have installed version 1.0-1", Check: is("muster-test", "installed 1.0-1")},
	}
}

// more are the properties of a package with one more.
func more(name, ensure, key string, value any) func(string) typetest.Properties {
	return func(dir string) typetest.Properties {
		p := pkgtest.Properties(name, ensure)(dir)
		p[key] = value
		return p
	}
}

// held checks the version and whether it is held.
func held(name, version string, want bool) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		is(name, "installed "+version)(t, dir)
		if got := pkgtest.Sh(t, "apt-mark showhold"); (got == name) != want {
			t.Errorf("held is %q", got)
		}
	}
}

func TestContract(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	typetest.Run(t, typetest.Config{Type: pkg.New(apt.New()), ReadOnly: typetest.Only("dpkg-query -W ", "apt-cache policy ", "apt-get -s "), Lie: pkgtest.Lie, Cases: append(decisions(), states()...)})
}

// TestErrors checks the remedies for errors of apt, and that an error installs nothing.
func TestErrors(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	for name, c := range map[string]struct {
		setup, pkg, version string
		err                 error
		says                string
	}{
		"no such version":            {pkg: "muster-test", version: "9.9", err: pkg.ErrNoVersion, says: "Version '9.9' for 'muster-test' was not found: there is no such version: `apt-cache madison`"},
		"no such package":            {pkg: "no-such-package", version: "present", err: pkg.ErrNoPackage, says: "cache_max_age"},
		"no such package, latest":    {pkg: "no-such-package", version: "latest", err: pkg.ErrNoPackage, says: "Unable to locate package no-such-package: there is no such package: check its name"},
		"a name is no expression":    {pkg: "muster.test", version: "present", err: pkg.ErrNoPackage, says: "muster.test"},
		"a virtual package":          {pkg: "muster-virtual", version: "present", err: pkg.ErrNoPackage, says: "name one of those that provide it"},
		"a name that one provides":   {pkg: "muster-only", version: "present", err: pkg.ErrNoPackage, says: "Package muster-only is a virtual package provided by muster-sole"},
		"of two that conflict":       {setup: "INSTALL muster-other=1.0", pkg: "muster-virtual", version: "present", err: pkg.ErrNoPackage, says: "muster-real 1.0"},
		"a dependency is not there":  {pkg: "muster-needs", version: "present", err: pkg.ErrUnmet, says: "The following packages have unmet dependencies: muster-needs : Depends: no-such-thing but it is not installable: the dep"},
		"its script fails":           {pkg: "muster-bad", version: "present", err: pkg.ErrScript, says: "a script of a package failed: fix"},
		"what its script said":       {pkg: "muster-bad", version: "present", err: pkg.ErrScript, says: "it does not work\ndpkg: error processing package muster-bad"},
		"two scripts fail":           {setup: "INSTALL muster-bad=1.0 || true", pkg: "muster-bad2", version: "present", err: pkg.ErrScript, says: "nor does this\ndpkg: error processing package muster-bad2"},
		"a + is part of the name":    {pkg: "muster-test+", version: "present", err: pkg.ErrNoPackage, says: "muster-test+: there is no such package: apt reads it as install muster-test: remove the +"},
		"one more +":                 {pkg: "muster-c++", version: "present", err: pkg.ErrNoPackage, says: "Unable to locate package muster-c++: there is no such package: check its name"},
		"one + less, and a version":  {pkg: "muster-g+", version: "1.0", err: pkg.ErrNoPackage, says: "Unable to locate package muster-g+: there"},
		"one + less":                 {pkg: "muster-g+", version: "present", err: pkg.ErrNoPackage, says: "Unable to locate package muster-g+: there is no such package: apt reads it as install muster-g: remove the +"},
		"a virtual one, a version":   {pkg: "muster-only", version: "1.0", err: pkg.ErrNoPackage, says: "Package muster-only is a virtual package provided by muster-sole"},
		"a virtual one, with a +":    {pkg: "muster-sole+", version: "present", err: pkg.ErrNoPackage, says: "Unable to locate package muster-sole+: there is no such package: apt"},
		"a +, with a version":        {pkg: "muster-test+", version: "1.0-1", err: pkg.ErrNoPackage, says: "muster-test+"},
		"another one is not set up":  {setup: "INSTALL muster-bad=1.0 || true", pkg: "muster-real", version: "present", err: pkg.ErrScript, says: "dpkg --configure -a"},
		"dpkg was interrupted":       {setup: "echo > /var/lib/dpkg/updates/0001", pkg: "muster-real", version: "present", err: pkg.ErrBroken, says: "run `dpkg --configure -a`"},
		"dependencies are not met":   {setup: "dpkg --unpack --force-all /srv/repo/muster-needs_1.0_all.deb", pkg: "muster-real", version: "present", err: pkg.ErrBroken, says: "--fix-broken install"},
		"held without being watched": {setup: "INSTALL muster-test=1.0-1; apt-mark hold muster-test", pkg: "muster-test", version: "1:0.9-1", err: pkg.ErrHeld, says: "apt-mark showhold"},
		"the archive is gone":        {setup: "mv /srv/repo/muster-real_1.0_all.deb /srv/gone", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "check the repositories"},
	} {
		t.Run(name, func(t *testing.T) {
			with(c.setup)(t, "")
			t.Cleanup(func() {
				pkgtest.Sh(t, "rm -f /var/lib/dpkg/updates/0001; [ ! -e /srv/gone ] || mv /srv/gone /srv/repo/muster-real_1.0_all.deb")
			})
			before := pkgtest.Sh(t, "dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep ' installed'")
			err := pkgtest.Install(t.Context(), pkgtest.Env(t), apt.New(), c.pkg, c.version)
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("the error is %v, not %v with %q", err, c.err, c.says)
			}
			if after := pkgtest.Sh(t, "dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep ' installed'"); c.err != pkg.ErrScript && after != before {
				t.Errorf("something was installed:\n%s", after)
			}
		})
	}
}

// TestNotBrokenOff ends the time of a change that dpkg is in the middle of.
func TestNotBrokenOff(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	with("")(t, "")
	pkgtest.NotBrokenOff(t, apt.New())
	is("muster-slow", "installed 1.0")(t, "")
	if err := pkgtest.Install(t.Context(), pkgtest.Env(t), apt.New(), "muster-real", "present"); err != nil {
		t.Errorf("the next change fails: %v", err)
	}
}

// TestOnlyRoot changes a package as another user, without a wait.
func TestOnlyRoot(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	pkgtest.Sh(t, "mkdir -p /usr/local/sbin; printf '#!/bin/sh\\nexec setpriv --reuid 1000 --clear-groups /usr/bin/apt-get \"$@\"\\n' > /usr/local/sbin/apt-get; chmod 755 /usr/local/sbin/apt-get")
	e := pkgtest.Env(t)
	e.Log = slog.New(slog.NewTextHandler(&pkgtest.Never{T: t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := pkgtest.Install(t.Context(), e, apt.New(), "muster-real", "present"); !errors.Is(err, pkg.ErrNotRoot) {
		t.Errorf("the error is %v", err)
	}
	if err := apt.New().Refresh(t.Context(), e, time.Nanosecond, true); !errors.Is(err, pkg.ErrNotRoot) {
		t.Errorf("of refreshing the error is %v", err)
	}
}

// TestSimulate finds what goes along, and changes nothing.
func TestSimulate(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	with("INSTALL muster-other=1.0 muster-lib=1.0 muster-tool=1.0")(t, "")
	for name, c := range map[string]struct {
		requests []pkg.Request
		want     string
	}{
		"makes room":         {[]pkg.Request{{Action: pkg.Install, Name: "muster-real", Version: "present"}}, "muster-other 1.0"},
		"depends on it":      {[]pkg.Request{{Action: pkg.Uninstall, Name: "muster-lib:all"}}, "muster-tool 1.0"},
		"both are asked for": {[]pkg.Request{{Action: pkg.Uninstall, Name: "muster-lib"}, {Action: pkg.Uninstall, Name: "muster-tool"}}, ""},
		"nothing":            {[]pkg.Request{{Action: pkg.Install, Name: "muster-many0", Version: "1.0"}}, ""},
	} {
		var got []string
		removed, err := apt.New().Simulate(t.Context(), pkgtest.Env(t), c.requests)
		for _, p := range removed {
			got = append(got, p.Names[0]+" "+p.Version)
		}
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	is("muster-tool", "installed 1.0")(t, "")
}

// TestLocks covers every lock that apt takes.
func TestLocks(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	waiting := func(timeout time.Duration) *apt.Provider {
		p := apt.New()
		p.LockTimeout = timeout
		return p
	}
	hold := func(paths ...string) map[string]func(testing.TB) func() {
		out := map[string]func(testing.TB) func(){}
		for _, path := range paths {
			out[path] = pkgtest.Lock(path)
		}
		return out
	}
	pkgtest.Locks{
		Hold:  hold("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/cache/apt/archives/lock"),
		Clean: func(t testing.TB, _ resource.Env) { pkgtest.Sh(t, clean) },
		Do: func(ctx context.Context, env resource.Env, timeout time.Duration) error {
			return pkgtest.Install(ctx, env, waiting(timeout), "muster-real", "present")
		},
		Done: func(t testing.TB, _ resource.Env) bool {
			return pkgtest.Sh(t, "dpkg-query -W -f '${db:Status-Status}' muster-real 2>/dev/null || true") == "installed"
		},
		Says: "It is held by process",
	}.Test(t)
	pkgtest.Locks{
		Hold:  hold("/var/lib/apt/lists/lock"),
		Clean: pkgtest.NoLists("apt"),
		Do: func(ctx context.Context, env resource.Env, timeout time.Duration) error {
			return waiting(timeout).Refresh(ctx, env, time.Nanosecond, true)
		},
		Done: pkgtest.HasLists("apt"),
		Says: "It is held by process",
	}.Test(t)
}

// TestTogether changes packages in every way in one transaction.
func TestTogether(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	with("INSTALL muster-test=1:0.9-1 muster-other=1.0 mustertest=1.0")(t, "")
	err := apt.New().ChangeAll(t.Context(), pkgtest.Env(t), []pkg.Request{
		{Action: pkg.Downgrade, Name: "muster-test", Version: "1.0-1"},
		{Action: pkg.Uninstall, Name: "muster-other"},
		{Action: pkg.Install, Name: "muster-real", Version: pkg.EnsureLatest},
		{Action: pkg.Install, Name: "muster-many0", Version: "present"},
	})
	if err != nil {
		t.Fatal(err)
	}
	is("muster-test", "installed 1.0-1")(t, "")
	is("muster-other", "config-files 1.0")(t, "")
	is("muster-real", "installed 1.0")(t, "")
	is("muster-many0", "installed 1.0")(t, "")
	if got := pkgtest.Sh(t, "tail -7 /var/log/apt/history.log"); strings.Count(got, "Commandline") != 1 || !strings.Contains(got, "Downgrade: muster-test") || !strings.Contains(got, "Install: muster-many0") || !strings.Contains(got, "Remove: muster-other") {
		t.Errorf("the history says %s", got)
	}
	if err := apt.New().ChangeAll(t.Context(), pkgtest.Env(t), []pkg.Request{{Action: pkg.Uninstall, Name: "muster-real"}, {Action: pkg.Uninstall, Name: "mustertest"}}); err != nil {
		t.Fatal(err)
	}
	is("mustertest", "config-files 1.0")(t, "")
}

// TestRefresh checks when lists are refreshed, and that lists that cannot be
// had are an error.
func TestRefresh(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	e := pkgtest.Env(t)
	if err := os.MkdirAll(e.Host.StateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	const old = "rm -f /etc/apt/sources.list.d/new.list; find /etc/apt -exec touch -d '3 hours ago' {} +; find /var/lib/apt/lists -exec touch -d '2 hours ago' {} +; "
	refresh := func(maxAge time.Duration) bool {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(e.Host.StateDir(), "refreshes")); err != nil {
			t.Fatal(err)
		}
		if err := apt.New().Refresh(t.Context(), e, maxAge, true); err != nil {
			t.Fatal(err)
		}
		at, err := pkg.Refreshed(e, "apt")
		return err == nil && !at.IsZero()
	}
	for name, c := range map[string]struct {
		setup  string
		maxAge time.Duration
		does   bool
	}{
		"off":                     {setup: old},
		"young enough":            {setup: old, maxAge: 4 * time.Hour},
		"too old":                 {setup: old, maxAge: time.Hour, does: true},
		"a source is newer":       {setup: old + "touch /etc/apt/sources.list", maxAge: 3 * time.Hour, does: true},
		"a source was added":      {setup: old + "touch /etc/apt/sources.list.d/new.list", maxAge: 3 * time.Hour, does: true},
		"no lists at all":         {setup: "rm -r /var/lib/apt/lists", maxAge: time.Hour, does: true},
		"apt's own job was there": {setup: old + "mkdir -p /var/lib/apt/periodic; touch /var/lib/apt/periodic/update-success-stamp", maxAge: time.Hour},
		"that was too long ago":   {setup: old + "mkdir -p /var/lib/apt/periodic; touch -d '2 hours ago' /var/lib/apt/periodic/update-success-stamp", maxAge: time.Hour, does: true},
	} {
		t.Run(name, func(t *testing.T) {
			pkgtest.Sh(t, "rm -rf /var/lib/apt/periodic; "+c.setup)
			if refresh(c.maxAge) != c.does {
				t.Errorf("refreshed: %v", !c.does)
			}
		})
	}
	// Nothing new was there, so apt left its lists alone: the note must hold.
	pkgtest.Sh(t, "rm -rf /var/lib/apt/periodic; "+old)
	if !refresh(time.Hour) {
		t.Fatal("not refreshed")
	}
	pkgtest.Sh(t, "echo deb [trusted=yes] http://127.0.0.1:1/ ./ >> /etc/apt/sources.list; "+old)
	if err := apt.New().Refresh(t.Context(), e, time.Hour, true); err != nil {
		t.Errorf("refreshed again: %v", err)
	}
	pkgtest.Sh(t, "rm -r "+filepath.Join(e.Host.StateDir(), "refreshes"))
	// A run does not request an unavailable package again until the sources change.
	p := apt.New()
	e.RunID = "r1"
	pkgtest.Sh(t, "touch /etc/apt/sources.list")
	for i, asks := range []bool{true, false, true} {
		if i == 2 {
			pkgtest.Sh(t, "touch /etc/apt/sources.list")
		}
		if err := p.Refresh(t.Context(), e, pkg.Following, false); (err != nil) != asks {
			t.Errorf("the time %d the error is %v", i+1, err)
		}
	}
	err := apt.New().Refresh(t.Context(), e, time.Hour, true)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1") || !errors.Is(err, pkg.ErrDownload) {
		t.Errorf("the error is %v", err)
	}
}

// TestOrderIsThatOfDpkg compares generated pairs of versions with what dpkg says.
func TestOrderIsThatOfDpkg(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	generate := func(random *rand.Rand) (a, b string) {
		a = generated(random)
		if random.IntN(4) == 0 {
			return a, a
		}
		return a, mutated(random, a)
	}
	const ask = `n=0
while read a b order; do
  case $order in -1) is=lt;; 0) is=eq;; *) is=gt;; esac
  dpkg --compare-versions "$a" $is "$b" || echo "$a $is $b"
  n=$((n + 1))
done
echo $n`
	pkgtest.Agrees(t, apt.New(), generate, "sh", "-c", ask)
}

// generated gives a version such as there may be.
func generated(random *rand.Rand) string {
	v := strings.TrimRight(pkgtest.Text(random, "0123456789", 2)+pkgtest.Text(random, "00119.+~-azAZ", 8), "-")
	if random.IntN(4) > 0 {
		v += "-" + pkgtest.Text(random, "0019.+~aZ", 4)
	}
	if random.IntN(4) == 0 {
		v = pkgtest.Text(random, "012", 2) + ":" + v
	}

	return v
}

// mutated returns a version close to another version.
func mutated(random *rand.Rand, v string) string {
	const signs = "01~.+a"
	at := 1 + random.IntN(len(v))
	if at == len(v) {
		return v + pkgtest.Text(random, signs, 1)
	}
	if at <= strings.IndexByte(v, ':')+1 || strings.ContainsAny(v[at-1:at+1], "-") {
		return generated(random)
	}

	return v[:at] + pkgtest.Text(random, signs, 1) + v[at+random.IntN(2):]
}
