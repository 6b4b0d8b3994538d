//go:build system

package apt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

// sh runs a script in the machine and gives what it printed.
func sh(t *testing.T, script string) string {
	t.Helper()
	result, err := hosttest.New(t).Run(t.Context(), host.Command{Argv: []string{"sh", "-euc", script}, Env: []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s%s", script, result.ExitCode, err, result.Stdout, result.Stderr)
	}

	return strings.TrimSpace(result.Stdout.String())
}

// clean is a machine on which nothing of the repository is installed.
const clean = `rm -f /root/fixed
dpkg --purge --force-all $(dpkg-query -W -f '${Package}\n' 'muster*' | sort) > /dev/null 2>&1 || true
INSTALL() { for p; do dpkg --install /srv/repo/$(echo $p | sed "s/=/_/; s/:/%3a/")_all.deb; done; }
`

func with(script string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		sh(t, clean+script)
	}
}

// is checks what dpkg says in the end.
func is(name, want string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		got := sh(t, "dpkg-query -W -f '${db:Status-Status} ${Version}' "+name+" 2>/dev/null || echo unknown")
		if got != want {
			t.Errorf("dpkg says %q, not %q", got, want)
		}
	}
}

func properties(name, ensure string) func(string) typetest.Properties {
	return func(string) typetest.Properties { return typetest.Properties{"name": name, "ensure": ensure} }
}

// lie claims that nothing was done, and that what is to be the latest is not there at all.
func lie(before resource.State, outcome resource.Outcome) (resource.Outcome, resource.State) {
	state := *before.(*pkg.State)
	if state.Candidate != "" {
		state.Ensure = model.EnsureAbsent
	}

	return outcome, &state
}

// decisions are the rows of the decision table.
func decisions() []typetest.Case {
	const newest, middle, oldest = "1:0.9-1", "1.0-1", "1.0~rc1-1"
	row := func(ensure, have, message, after string) typetest.Case {
		c := typetest.Case{Name: ensure + ", " + have, Properties: properties("muster-test", ensure), Setup: with(""), Message: message, Check: is("muster-test", after)}
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

// states are the rows of the table of package states: only installed is present.
func states() []typetest.Case {
	row := func(status string, setup func(*testing.T, string)) typetest.Case {
		return typetest.Case{Name: status, Setup: setup, Properties: properties("muster-test", "present"), Message: "Would have installed", Check: is("muster-test", "installed 1:0.9-1")}
	}
	forged := func(status string) func(*testing.T, string) {
		return with("INSTALL muster-test=1:0.9-1; sed -i '/^Package: muster-test$/,/^$/s/^Status:.*/Status: install " + status + "/' /var/lib/dpkg/status")
	}
	installed := row("installed", with("INSTALL muster-test=1.0-1"))
	installed.Message, installed.Check = "", is("muster-test", "installed 1.0-1")

	return []typetest.Case{
		installed,
		row("config-files", with("INSTALL muster-test=1.0-1; dpkg --remove muster-test")),
		row("half-installed", forged("reinstreq half-installed")),
		row("half-configured", forged("ok half-configured")),
		row("unpacked", with("dpkg --unpack /srv/repo/muster-test_1%3a0.9-1_all.deb")),
		row("not-installed", with("")),
		{Name: "absent, config-files", Setup: with("INSTALL muster-test=1.0-1; dpkg --remove muster-test"), Properties: properties("muster-test", "absent"), Check: is("muster-test", "config-files 1.0-1")},
		{Name: "held", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: properties("muster-test", "latest"), Error: "the package is held: muster-test is 1.0-1; release it with `apt-mark unhold muster-test`"},
		{Name: "held, absent", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: properties("muster-test", "absent"), Error: "apt-mark unhold"},
		{Name: "held and as it should be", Setup: with("INSTALL muster-test=1.0-1; apt-mark hold muster-test"), Properties: properties("muster-test", "present")},
		{
			Name: "a changed configuration file is kept", Properties: properties("muster-test", "latest"), Message: "Would have upgraded to latest",
			Setup: with("INSTALL muster-test=1.0-1; echo mine > /etc/muster-test/c.conf"),
			Check: func(t *testing.T, _ string) {
				if got := sh(t, "cat /etc/muster-test/c.conf"); got != "mine" {
					t.Errorf("the file holds %q", got)
				}
			},
		},
		{Name: "with its architecture, latest", Setup: with("INSTALL muster-test=1.0-1"), Properties: properties("muster-test:all", "latest"), Message: "Would have upgraded to latest", Check: is("muster-test", "installed 1:0.9-1")},
		{Name: "with its architecture", Setup: with(""), Properties: properties("muster-test:all", "1.0-1"), Message: "Would have installed version 1.0-1", Check: is("muster-test", "installed 1.0-1")},
	}
}

func TestContract(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	typetest.Run(t, typetest.Config{Type: resource.Of(pkg.New(apt.New())), Lie: lie, Cases: append(decisions(), states()...)})
}

func env(t *testing.T) resource.Env {
	t.Helper()
	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
}

// TestErrors checks that what apt refuses is told with its remedy, and that
// nothing is installed by it.
func TestErrors(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	for name, c := range map[string]struct {
		setup, pkg, version string
		err                 error
		says                string
	}{
		"no such version":            {pkg: "muster-test", version: "9.9", err: pkg.ErrNoVersion, says: "apt-cache madison"},
		"no such package":            {pkg: "no-such-package", version: "present", err: pkg.ErrNoPackage, says: "cache_max_age"},
		"no such package, latest":    {pkg: "no-such-package", version: "latest", err: pkg.ErrNoPackage, says: "Unable to locate package no-such-package"},
		"a name is no expression":    {pkg: "muster.test", version: "present", err: pkg.ErrNoPackage, says: "muster.test"},
		"a virtual package":          {pkg: "muster-virtual", version: "present", err: pkg.ErrNoPackage, says: "name one of those that provide it"},
		"a dependency is not there":  {pkg: "muster-needs", version: "present", err: pkg.ErrUnmet, says: "no-such-thing"},
		"its script fails":           {pkg: "muster-bad", version: "present", err: pkg.ErrScript, says: "it does not work"},
		"another one is not set up":  {setup: "INSTALL muster-bad=1.0 || true", pkg: "muster-real", version: "present", err: pkg.ErrScript, says: "dpkg --configure -a"},
		"dpkg was interrupted":       {setup: "echo > /var/lib/dpkg/updates/0001", pkg: "muster-real", version: "present", err: pkg.ErrBroken, says: "run `dpkg --configure -a`"},
		"dependencies are not met":   {setup: "dpkg --unpack --force-all /srv/repo/muster-needs_1.0_all.deb", pkg: "muster-real", version: "present", err: pkg.ErrBroken, says: "--fix-broken install"},
		"held without being watched": {setup: "INSTALL muster-test=1.0-1; apt-mark hold muster-test", pkg: "muster-test", version: "1:0.9-1", err: pkg.ErrHeld, says: "apt-mark showhold"},
		"the archive is gone":        {setup: "mv /srv/repo/muster-real_1.0_all.deb /srv/gone", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "check the repositories"},
	} {
		t.Run(name, func(t *testing.T) {
			with(c.setup)(t, "")
			t.Cleanup(func() {
				sh2(t, "rm -f /var/lib/dpkg/updates/0001; [ ! -e /srv/gone ] || mv /srv/gone /srv/repo/muster-real_1.0_all.deb")
			})
			before := sh(t, "dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep ' installed'")
			err := apt.New().Install(t.Context(), env(t), c.pkg, c.version)
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("the error is %v, not %v with %q", err, c.err, c.says)
			}
			if after := sh(t, "dpkg-query -W -f '${Package} ${db:Status-Status}\n' | grep ' installed'"); c.err != pkg.ErrScript && after != before {
				t.Errorf("something was installed:\n%s", after)
			}
		})
	}
}

// sh2 is sh for the end of a test, when its context has ended.
func sh2(t *testing.T, script string) {
	t.Helper()
	if _, err := hosttest.New(t).Run(context.Background(), host.Command{Argv: []string{"sh", "-euc", script}}); err != nil {
		t.Error(err)
	}
}

// hold takes a lock as another process would, and gives what lets it go.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })

	return func() { _ = f.Close() }
}

// recorded is a log that tells of its first line.
type recorded struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first func()
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text.Len() == 0 && r.first != nil {
		r.first()
	}

	return r.text.Write(b)
}

// TestLocks checks that the lock of another process is waited for, with a
// message, and not for ever.
func TestLocks(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	for _, path := range []string{"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/cache/apt/archives/lock"} {
		t.Run(path, func(t *testing.T) {
			with("")(t, "")
			release := hold(t, path)
			log := &recorded{first: release}
			e := resource.Env{Host: hosttest.New(t), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
			if err := apt.New().Install(t.Context(), e, "muster-real", "present"); err != nil {
				t.Fatal(err)
			}
			if text := log.text.String(); strings.Count(text, "waiting for another process that changes packages") != 1 || !strings.Contains(text, "It is held by process") {
				t.Errorf("the log says %q", text)
			}
			is("muster-real", "installed 1.0")(t, "")
		})
		t.Run(path+", too long", func(t *testing.T) {
			with("")(t, "")
			hold(t, path)
			p := apt.New()
			p.LockTimeout = time.Second
			err := p.Install(t.Context(), env(t), "muster-real", "present")
			if !errors.Is(err, pkg.ErrLocked) || !strings.Contains(err.Error(), "It is held by process") || !strings.Contains(err.Error(), "still after 1s") {
				t.Errorf("the error is %v", err)
			}
			is("muster-real", "unknown")(t, "")
		})
	}
	t.Run("a time-out ends the wait", func(t *testing.T) {
		hold(t, "/var/lib/dpkg/lock-frontend")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("timed out after 1s"))
		defer cancel()
		if err := apt.New().Install(ctx, env(t), "muster-real", "present"); err == nil || !strings.Contains(err.Error(), "timed out after 1s") {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestTogether changes packages in every way in one transaction.
func TestTogether(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	with("INSTALL muster-test=1:0.9-1 muster-other=1.0 mustertest=1.0")(t, "")
	err := apt.New().ChangeAll(t.Context(), env(t), []pkg.Request{
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
	if got := sh(t, "tail -7 /var/log/apt/history.log"); strings.Count(got, "Commandline") != 1 || !strings.Contains(got, "Downgrade: muster-test") || !strings.Contains(got, "Install: muster-many0") || !strings.Contains(got, "Remove: muster-other") {
		t.Errorf("the history says %s", got)
	}
	if err := apt.New().ChangeAll(t.Context(), env(t), []pkg.Request{{Action: pkg.Uninstall, Name: "muster-real"}, {Action: pkg.Uninstall, Name: "mustertest"}}); err != nil {
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
	e := env(t)
	if err := os.MkdirAll(e.Host.StateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	const old = "rm -f /etc/apt/sources.list.d/new.list; find /etc/apt -exec touch -d '3 hours ago' {} +; find /var/lib/apt/lists -exec touch -d '2 hours ago' {} +; "
	note := e.Host.StateDir() + "/refreshed-apt"
	refresh := func(maxAge time.Duration) bool {
		t.Helper()
		if err := os.RemoveAll(note); err != nil {
			t.Fatal(err)
		}
		if err := apt.New().Refresh(t.Context(), e, maxAge, true); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(note)
		return err == nil
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
			sh(t, "rm -rf /var/lib/apt/periodic; "+c.setup)
			if refresh(c.maxAge) != c.does {
				t.Errorf("refreshed: %v", !c.does)
			}
		})
	}
	// Nothing new was there, so apt left its lists alone: the note must hold.
	sh(t, "rm -rf /var/lib/apt/periodic; "+old)
	if !refresh(time.Hour) {
		t.Fatal("not refreshed")
	}
	sh(t, "echo deb [trusted=yes] http://127.0.0.1:1/ ./ >> /etc/apt/sources.list; "+old)
	if err := apt.New().Refresh(t.Context(), e, time.Hour, true); err != nil {
		t.Errorf("refreshed again: %v", err)
	}
	sh(t, "rm "+note)
	err := apt.New().Refresh(t.Context(), e, time.Hour, true)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1") || !errors.Is(err, pkg.ErrDownload) {
		t.Errorf("the error is %v", err)
	}
}

// TestOrderIsThatOfDpkg compares 10,000 generated pairs of versions with what dpkg says.
func TestOrderIsThatOfDpkg(t *testing.T) {
	if !rigs.Inside(t, rigs.Apt) {
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	const pairs = 10_000
	seen := map[int]int{}
	for range pairs {
		a := generated(random)
		b := a
		if random.IntN(4) > 0 {
			b = mutated(random, a)
		}
		order, err := apt.New().VersionCmp(a, b, false)
		if err != nil {
			t.Fatal(err)
		}
		seen[order]++
		fmt.Fprintln(&lines, a, map[int]string{-1: "lt", 0: "eq", 1: "gt"}[order], b)
	}
	for order := -1; order <= 1; order++ {
		if seen[order] < pairs/10 {
			t.Errorf("only %d pairs are of order %d", seen[order], order)
		}
	}
	const ask = `while read a op b; do dpkg --compare-versions "$a" "$op" "$b" || echo "$a $op $b"; done`
	result, err := hosttest.New(t).Run(t.Context(), host.Command{Argv: []string{"sh", "-c", ask}, Stdin: strings.NewReader(lines.String())})
	if err != nil || result.Stdout.String() != "" || result.Stderr.String() != "" {
		t.Errorf("dpkg does not agree: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
}

// generated gives a version such as there may be.
func generated(random *rand.Rand) string {
	text := func(letters string, most int) string {
		var b strings.Builder
		for range random.IntN(most) + 1 {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	v := text("0123456789", 2) + text("00119.+~-azAZ", 8)
	v = strings.TrimRight(v, "-") + "-" + text("0019.+~aZ", 4)
	if random.IntN(4) == 0 {
		v = text("012", 2) + ":" + v
	}

	return v
}

// mutated gives a version that is near another one.
func mutated(random *rand.Rand, v string) string {
	const signs = "01~.+a"
	at := 1 + random.IntN(len(v)-1)
	if at <= strings.IndexByte(v, ':')+1 || strings.ContainsAny(v[at-1:at+1], "-") {
		return generated(random)
	}
	sign := string(signs[random.IntN(len(signs))])

	return v[:at] + sign + v[at+random.IntN(2):]
}
