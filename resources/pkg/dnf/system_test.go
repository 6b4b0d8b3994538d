//go:build system

package dnf_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/dnf"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/rigs"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

// sh runs a script in the machine and gives what it printed.
func sh(t *testing.T, script string) string {
	t.Helper()
	result, err := hosttest.New(t).Run(t.Context(), host.Command{Argv: []string{"sh", "-euc", script}, Env: []string{"LC_ALL=C.UTF-8"}})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s%s", script, result.ExitCode, err, result.Stdout, result.Stderr)
	}

	return strings.TrimSpace(result.Stdout.String())
}

// with makes a machine on which nothing of the repository is installed but what rpm
// is told to install.
func with(install string) func(*testing.T, string) {
	script := "rpm -e --nodeps $(rpm -qa 'muster-*') > /dev/null 2>&1 || true\n"
	if install != "" {
		script += "rpm -i --nodeps /srv/repo/noarch/" + install + ".noarch.rpm\n"
	}

	return func(t *testing.T, _ string) {
		t.Helper()
		sh(t, script)
	}
}

// is checks what rpm says in the end.
func is(name, want string) func(*testing.T, string) {
	return func(t *testing.T, _ string) {
		t.Helper()
		if got := sh(t, "rpm -q --queryformat '%{EPOCH}:%{VERSION}-%{RELEASE}' "+name+" || true"); !strings.Contains(got, want) {
			t.Errorf("rpm says %q, not %q", got, want)
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

// decisions are the rows of the decision table, and those of what a version
// means without its release and with its epoch. The files of rpm have no epoch
// in their names.
func decisions() []typetest.Case {
	const epoch, newest, middle, oldest, none = "muster-test-0.9-1", "muster-test-2.0-1", "muster-test-1.0-1", "muster-test-1.0~rc1-1", ""
	row := func(ensure, have, message, after string) typetest.Case {
		return typetest.Case{Name: ensure + ", " + have, Properties: properties("muster-test", ensure), Setup: with(have), Message: message, Check: is("muster-test", after)}
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
		{Name: "with its architecture", Setup: with(none), Properties: properties("muster-test.noarch", "1.0"), Message: "Would have installed version 1.0", Check: is("muster-test", "0:1.0-1")},
		{
			Name: "the newest of several", Properties: properties("muster-test", "2.0-1"), Check: is("muster-test", "0:2.0-1"),
			Setup: func(t *testing.T, dir string) {
				with(middle)(t, dir)
				sh(t, "rpm -i --force /srv/repo/noarch/muster-test-2.0-1.noarch.rpm")
			},
		},
	}
}

func facts() model.Facts {
	return model.Facts{"host": map[string]any{"info": map[string]any{"platformFamily": "fedora"}}}
}

func env(t *testing.T) resource.Env {
	t.Helper()
	return resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}
}

func TestContract(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	sh(t, "dnf -q makecache")
	typetest.Run(t, typetest.Config{Type: resource.Of(pkg.New(dnf.New())), Facts: facts(), Lie: lie, Cases: decisions()})
}

// TestErrors checks that what dnf refuses is told with its remedy.
func TestErrors(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	install := dnf.Provider.Install
	for name, c := range map[string]struct {
		setup, pkg, version string
		do                  func(dnf.Provider) error
		err                 error
		says                string
	}{
		"no such version":           {pkg: "muster-test", version: "9.9", err: pkg.ErrNoPackage, says: "dnf list --showduplicates"},
		"no such package":           {pkg: "no-such-package", version: "present", err: pkg.ErrNoPackage, says: "check its name"},
		"a dependency is not there": {pkg: "muster-needs", version: "present", err: pkg.ErrUnmet, says: "no-such-thing"},
		"excluded":                  {setup: "echo exclude=muster-real >> /etc/yum.repos.d/muster.repo", pkg: "muster-real", version: "present", err: pkg.ErrHeld, says: "versionlock"},
		"the archive is gone":       {setup: "dnf -q makecache; mv /srv/repo/noarch/muster-real-1.0-1.noarch.rpm /srv/gone", pkg: "muster-real", version: "present", err: pkg.ErrDownload, says: "muster-real"},
	} {
		t.Run(name, func(t *testing.T) {
			with("")(t, "")
			sh(t, "sed -i /^exclude/d /etc/yum.repos.d/muster.repo; "+c.setup)
			err := install(dnf.New(), t.Context(), env(t), c.pkg, c.version)
			if !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("the error is %v, not %v with %q", err, c.err, c.says)
			}
			sh(t, "[ ! -e /srv/gone ] || mv /srv/gone /srv/repo/noarch/muster-real-1.0-1.noarch.rpm")
		})
	}
	t.Run("nothing lower", func(t *testing.T) {
		with("muster-test-1.0~rc1-1")(t, "")
		if err := dnf.New().Downgrade(t.Context(), env(t), "muster-test", "0.1"); !errors.Is(err, pkg.ErrNoVersion) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("a damaged database is not an absent package", func(t *testing.T) {
		with("muster-test-1.0-1")(t, "")
		sh(t, "cp -r /var/lib/rpm /srv/rpm; rm -f /var/lib/rpm/rpmdb.sqlite-*; echo garbage > /var/lib/rpm/rpmdb.sqlite")
		state, err := dnf.New().Status(t.Context(), env(t), "muster-test")
		if !errors.Is(err, pkg.ErrBroken) || !strings.Contains(err.Error(), "rpm --rebuilddb") {
			t.Errorf("the error is %v, the state %+v", err, state)
		}
		sh(t, "rm -r /var/lib/rpm; mv /srv/rpm /var/lib/rpm")
	})
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
	if r.text.Len() == 0 {
		r.first()
	}

	return r.text.Write(b)
}

// locks are the ways in which another process holds on: rpm's lock, and the
// files with a process id by which dnf tells others of itself.
func locks() map[string]func(*testing.T) (release func()) {
	other := func(path string) func(*testing.T) func() {
		return func(t *testing.T) func() {
			t.Helper()
			// A process of our own: dnf looks whether there is one.
			if err := os.WriteFile(path, fmt.Append(nil, os.Getpid()), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(path) })
			return func() { _ = os.Remove(path) }
		}
	}

	return map[string]func(*testing.T) func(){
		"dnf": other("/var/cache/dnf/metadata_lock.pid"),
		"rpm": func(t *testing.T) func() {
			f, err := os.OpenFile("/var/lib/rpm/.rpm.lock", os.O_RDWR|os.O_CREATE, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return func() { _ = f.Close() }
		},
	}
}

// TestLocks checks that the lock of another process is waited for, with a
// message, and not for ever.
func TestLocks(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	for name, hold := range locks() {
		t.Run(name, func(t *testing.T) {
			with("")(t, "")
			log := &recorded{first: hold(t)}
			e := resource.Env{Host: hosttest.New(t), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
			if err := dnf.New().Install(t.Context(), e, "muster-real", "present"); err != nil {
				t.Fatal(err)
			}
			if text := log.text.String(); strings.Count(text, "waiting for another process that changes packages") != 1 {
				t.Errorf("the log says %q", text)
			}
			is("muster-real", "0:1.0-1")(t, "")
		})
		t.Run(name+", too long", func(t *testing.T) {
			with("")(t, "")
			hold(t)
			p := dnf.New()
			p.LockTimeout = time.Second
			err := p.Install(t.Context(), env(t), "muster-real", "present")
			if !errors.Is(err, pkg.ErrLocked) || !strings.Contains(err.Error(), "still after 1s") {
				t.Errorf("the error is %v", err)
			}
			is("muster-real", "not installed")(t, "")
		})
	}
}

// TestTogether changes packages in every way at once, and refreshes the lists.
func TestTogether(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	with("muster-test-2.0-1")(t, "")
	sh(t, "rpm -i /srv/repo/noarch/muster-many0-1.0-1.noarch.rpm")
	e := env(t)
	if err := os.MkdirAll(e.Host.StateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	p := dnf.New()
	for _, maxAge := range []time.Duration{0, time.Hour, time.Hour} {
		if err := p.Refresh(t.Context(), e, maxAge, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(e.Host.StateDir() + "/refreshed-dnf"); err != nil {
		t.Error(err)
	}
	candidates, err := p.Candidates(t.Context(), e, []string{"muster-test", "muster-many0", "no-such-package"})
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
	got := strings.Split(sh(t, "rpm -qa 'muster-*' | sort"), "\n")
	if want := []string{"muster-many1-1.0-1.noarch", "muster-many2-1.0-1.noarch", "muster-test-1.0-1.noarch"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	sh(t, "mv /srv/repo/repodata /srv/repodata; rm -r /var/cache/dnf; echo skip_if_unavailable=0 >> /etc/yum.repos.d/muster.repo")
	if err := p.Refresh(t.Context(), e, time.Nanosecond, true); !errors.Is(err, pkg.ErrDownload) {
		t.Errorf("the error is %v", err)
	}
}

// TestOrderIsThatOfRpm compares 10,000 generated pairs of versions with what rpm
// says, apart from those that it takes for equal.
func TestOrderIsThatOfRpm(t *testing.T) {
	if !rigs.Inside(t, rigs.DNF) {
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	const pairs = 10_000
	seen := map[int]int{}
	for range pairs {
		a, b := generated(random), generated(random)
		if random.IntN(2) == 0 {
			at := random.IntN(len(a.version)) + 1
			b = parts{a.epoch, a.version[:at] + []string{"~", "^", ".", "1", "0", "a", "~1", "^1"}[random.IntN(8)] + a.version[at:], a.release}
		}
		if random.IntN(8) == 0 {
			b = a
		}
		order, err := dnf.New().VersionCmp(a.String(), b.String(), false)
		if err != nil {
			t.Fatal(err)
		}
		seen[order]++
		fmt.Fprintln(&lines, a.epoch, a.version, a.release, b.epoch, b.version, b.release, order)
	}
	for order := -1; order <= 1; order++ {
		if seen[order] < pairs/20 {
			t.Errorf("only %d pairs are of order %d", seen[order], order)
		}
	}
	const ask = `
import rpm, sys
n = 0
for line in sys.stdin:
    f = line.split()
    want = rpm.labelCompare(tuple(f[0:3]), tuple(f[3:6]))
    if want != int(f[6]) and want != 0: print(line, want)
    n += 1
print(n)`
	result, err := hosttest.New(t).Run(t.Context(), host.Command{Argv: []string{"python3", "-c", ask}, Stdin: strings.NewReader(lines.String())})
	if err != nil || result.Stdout.String() != fmt.Sprintln(pairs) || result.Stderr.String() != "" {
		t.Errorf("rpm does not agree: %v\n%s%s", err, result.Stdout, result.Stderr)
	}
}

type parts struct{ epoch, version, release string }

func (p parts) String() string { return p.epoch + ":" + p.version + "-" + p.release }

func generated(random *rand.Rand) parts {
	text := func(letters string, most int) string {
		var b strings.Builder
		for range random.IntN(most) + 1 {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}

	return parts{text("001", 1), text("12", 1) + text("00119..~^_+abAB", 6), text("01.~^a", 3)}
}
