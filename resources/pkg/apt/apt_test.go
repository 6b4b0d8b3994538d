package apt

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/testing/pkgtest"
)

func TestParseStatus(t *testing.T) {
	rows, err := parseStatus(pkgtest.Captured(t, "status.txt"))
	if err != nil || len(rows) != 5 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for name, want := range map[string]struct {
		ensure string
		held   bool
	}{
		"muster-test": {"1.0-1", true}, "muster-bad": {"1.0", false}, "mustertest": {"absent", false}, "nosuch": {"absent", false},
		"libc6": {"2.36-9+deb12u14", false}, "libc6:amd64": {"2.36-9+deb12u14", false}, "libc6:all": {"2.36-9+deb12u14", false}, "muster-test:amd64": {"1.0-1", true}, "libc6:i386": {"absent", false},
	} {
		if got := stateOf(name, rows); got.Ensure != want.ensure || got.Held != want.held || got.Name != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	want := &pkg.Metadata{
		Name: "muster-test", Version: "1.0-1", Arch: "all", URL: "http://example.net/", Summary: "a test", Provider: "apt", Full: "1.0-1",
		Extended: map[string]any{"status": "installed", "want": "hold"},
	}
	if got := stateOf("muster-test", rows).Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if _, err := parseStatus([]string{"muster-test 1.0"}); err == nil {
		t.Error("a line that is not understood is taken")
	}
}

// TestStates covers the tables of package states and of architectures.
func TestStates(t *testing.T) {
	for status, want := range map[string]struct{ ensure, broken string }{
		"installed": {"1", ""}, "config-files": {"absent", ""}, "not-installed": {"absent", ""}, "half-installed": {"1", "half-installed"}, "half-configured": {"1", "half-configured"},
		"unpacked": {"1", "unpacked"}, "triggers-awaited": {"1", "triggers-awaited"}, "triggers-pending": {"1", "triggers-pending"},
	} {
		if got := stateOf("p", []row{{name: "p", version: "1", arch: "all", status: status}}); got.Ensure != want.ensure || got.Broken != want.broken {
			t.Errorf("%s: %s, broken: %s", status, got.Ensure, got.Broken)
		}
	}
	if got := stateOf("p", []row{{name: "p", arch: "all", status: "half-installed"}}); got.Ensure != "absent" {
		t.Errorf("without a version: %s", got.Ensure)
	}
	two := []row{{name: "p", version: "1", arch: "other", status: "installed"}, {name: "p", version: "2", arch: pkg.Architecture(), status: "installed"}}
	for range 2 {
		slices.Reverse(two)
		for name, want := range map[string]string{"p": "2", "p:all": "2", "p:" + pkg.Architecture(): "2", "p:other": "1", "p:third": "absent"} {
			if got := stateOf(name, two); got.Ensure != want {
				t.Errorf("the version of %s is %s", name, got.Ensure)
			}
		}
	}
	if got := stateOf("p", []row{{name: "p", version: "1", arch: "other", status: "installed"}}); got.Ensure != "absent" {
		t.Errorf("one of another architecture: %s", got.Ensure)
	}
}

func TestParsePolicy(t *testing.T) {
	want := map[string]string{"muster-test": "1:0.9-1", "muster-real": "1.0", "libc6": "2.36-9+deb12u14"}
	if got := parsePolicy(pkgtest.Captured(t, "policy.txt")); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// TestReverseProvides reads the output of apt-cache for several packages.
func TestReverseProvides(t *testing.T) {
	lines := pkgtest.Captured(t, "showpkg.txt")
	mail := []string{"courier-mta", "dma", "esmtp-run", "exim4-daemon-heavy", "exim4-daemon-light", "msmtp-mta", "nullmailer", "opensmtpd", "postfix", "sendmail-bin", "ssmtp"}
	for name, want := range map[string][]string{
		"mail-transport-agent": mail, "mail-transport-agent:all": mail, "nanomsg-utils": nil, "g++": nil, "nano+": nil,
	} {
		if got := reverseProvides(lines, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add(strings.Join(pkgtest.Captured(f, "status.txt"), "\n"))
	f.Add("\t\t\t\t\t\t")
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := parseStatus(strings.Split(text, "\n"))
		if err != nil {
			return
		}
		for _, r := range rows {
			if state := stateOf(r.name, rows); state.Ensure == "" && r.version != "" {
				t.Errorf("%+v gives %+v", r, state)
			}
		}
	})
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(strings.Join(pkgtest.Captured(f, "policy.txt"), "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		for name, version := range parsePolicy(strings.Split(text, "\n")) {
			if name == "" || version == "(none)" || !strings.Contains(text, version) {
				t.Errorf("%q: %q", name, version)
			}
		}
	})
}

// TestArguments covers the commands of the tables of operations and flags.
func TestArguments(t *testing.T) {
	const options = " -o DPkg::Lock::Timeout=0 -o APT::Cmd::Pattern-Only=true -o DPkg::Pre-Invoke::=echo muster: dpkg begins -o Dir::Cache::pkgcache="
	const install, remove = "apt-get install -y -q -o DPkg::Options::=--force-confold" + options, "apt-get -q -y remove" + options + " -o DPkg::Options::=--force-remove-reinstreq"
	present := pkg.Request{Action: pkg.Install, Name: "a", Version: "present"}
	latest := pkg.Request{Action: pkg.Install, Name: "b", Version: "latest", Candidate: "2.0"}
	version := pkg.Request{Action: pkg.Install, Name: "c", Version: "1.0"}
	gone := pkg.Request{Action: pkg.Uninstall, Name: "d", Version: "absent"}
	for _, c := range []struct {
		requests []pkg.Request
		want     string
	}{
		{[]pkg.Request{present}, install + " a"},
		{[]pkg.Request{latest}, install + " b=2.0"},
		{[]pkg.Request{version}, install + " --allow-downgrades c=1.0"},
		{[]pkg.Request{{Action: pkg.Upgrade, Name: "b", Version: "latest", Candidate: "2.0"}}, install + " b=2.0"},
		{[]pkg.Request{{Action: pkg.Upgrade, Name: "c", Version: "1.0"}}, install + " --allow-downgrades c=1.0"},
		{[]pkg.Request{{Action: pkg.Downgrade, Name: "c", Version: "1.0"}}, install + " --allow-downgrades c=1.0"},
		{[]pkg.Request{{Action: pkg.Install, Name: "e", Version: "latest"}}, install + " e"},
		{[]pkg.Request{{Action: pkg.Install, Name: "c", Version: "00:1.0"}}, install + " --allow-downgrades c=1.0"},
		{[]pkg.Request{{Action: pkg.Install, Name: "c", Version: "10:1.0"}}, install + " --allow-downgrades c=10:1.0"},
		{[]pkg.Request{gone}, remove + " d"},
		{[]pkg.Request{gone, gone}, remove + " d d"},
		{[]pkg.Request{present, latest, version, gone}, install + " -o DPkg::Options::=--force-remove-reinstreq --allow-downgrades a b=2.0 c=1.0 d-"},
		{[]pkg.Request{{Action: pkg.Reinstall, Name: "a", Version: "1.0"}, present}, install + " --reinstall a a"},
		{[]pkg.Request{{Action: pkg.Configure, Name: "a", Version: "1.0"}}, install + " --allow-downgrades a=1.0"},
	} {
		if got := strings.Join(append([]string{"apt-get"}, arguments(c.requests)...), " "); got != c.want {
			t.Errorf("%+v:\n%s, not\n%s", c.requests, got, c.want)
		}
	}
}

// TestCommands has a command for each set of options, and those that hold at the end.
func TestCommands(t *testing.T) {
	yes, no := true, false
	var got []string
	for _, argv := range commands([]pkg.Request{
		{Action: pkg.Hold, Name: "a", Version: "present"},
		{Action: pkg.Install, Name: "a", Version: "present", Recommends: &no},
		{Action: pkg.Uninstall, Name: "b", Recommends: &no},
		{Action: pkg.Install, Name: "c", Version: "present"},
		{Action: pkg.Purge, Name: "d"},
		{Action: pkg.Install, Name: "e", Version: "latest", Candidate: "2", Release: "next", Held: true, Recommends: &yes},
		{Action: pkg.Unhold, Name: "f"},
		{Action: pkg.Install, Name: "g", Version: "present", Recommends: &no},
	}) {
		line := strings.Join(argv, " ")
		for _, option := range []string{" -o DPkg::Lock::Timeout=0", " -o APT::Cmd::Pattern-Only=true", " -o DPkg::Pre-Invoke::=echo muster: dpkg begins", " -o Dir::Cache::pkgcache=", " -o DPkg::Options::=--force-confold", " -o DPkg::Options::=--force-remove-reinstreq", " -q", " -y"} {
			line = strings.Replace(line, option, "", 1)
		}
		got = append(got, line)
	}
	want := []string{
		"apt-get install --no-install-recommends a g", "apt-get install b- c", "apt-get remove --purge d",
		"apt-get install --allow-change-held-packages --install-recommends -t next e=2", "apt-mark hold a", "apt-mark unhold f",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestEnvironment covers the table of environment variables.
func TestEnvironment(t *testing.T) {
	want := []string{"DEBIAN_FRONTEND=noninteractive", "APT_LISTBUGS_FRONTEND=none", "APT_LISTCHANGES_FRONTEND=none"}
	if got := New().changer().Environment; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestIsManageable(t *testing.T) {
	dir := t.TempDir()
	p := Provider{bin: dir}
	spec := func(name string) *pkg.Spec { return &pkg.Spec{Common: model.Common{Name: name}} }
	if ok, _, err := p.IsManageable(nil, spec("vim")); ok || err == nil || !strings.Contains(err.Error(), "apt-get") {
		t.Errorf("%v, %v", ok, err)
	}
	for _, program := range []string{"apt-get", "dpkg-query"} {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if ok, _, err := p.IsManageable(nil, spec("vim")); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, _, err := p.IsManageable(nil, spec("vim-")); ok || err == nil || !strings.Contains(err.Error(), "apt would remove") {
		t.Errorf("%v, %v", ok, err)
	}
	for name, good := range map[string]bool{"g++": true, "vim:i386": true, "vim:all": true, "vim:": false, "vim:any": false, "vim:native": false, "vim:i386+": false} {
		if ok, _, err := p.IsManageable(nil, spec(name)); ok != good || (err == nil) != good {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

// TestVersionCmp covers the tables of versions, of their formats and of return values.
func TestVersionCmp(t *testing.T) {
	pkgtest.Versions(t, New(), []pkgtest.Order{
		{A: "1.0", B: "2.0", Want: -1},
		{A: "1:1.0", B: "2.0", Want: 1},
		{A: "1.0~alpha", B: "1.0", Want: -1},
		{A: "1.0~alpha", B: "1.0~beta", Want: -1},
		{A: "1.0.1", B: "1.0.2", Want: -1},
		{A: "1.0-1", B: "1.0-2", Want: -1},
		{A: "1.0a", B: "1.0-", Want: -1},
		{A: "1.0~~", B: "1.0~", Want: -1},
		{A: "1.9", B: "1.13", Want: -1},
		{A: "1.0", B: "1.0", Want: 0},
		{A: "2.0", B: "1.0", Want: 1},
		{A: "0:1.0", B: "1.0", Want: 0},
		{A: "1.0", B: "1.0-0", Want: 0},
		{A: "1.0", B: "1.0.0", Want: -1},
		{A: "1.00", B: "1.0", Want: 0},
		{A: "1:2.0-3", B: "1:2.0-4", Want: -1},
		{A: "2:1.0.0+git-20190109-0ubuntu2", B: "2:1.0.0+git-20190109-0ubuntu3", Want: -1},
		{A: "1.0+b1", B: "1.0a", Want: 1},
		{A: "99999999999999999999:1", B: "99999999999999999998:1", Want: 1},
	}, []string{"", "x:1", "1:"})
}

func FuzzVersionCmp(f *testing.F) {
	f.Add("1:1.0~rc1-1", "1.0-1")
	f.Add("1.0a", "1.0-")
	pkgtest.FuzzVersions(f, New())
}

// TestSourcesChanged checks that an unreadable directory of repositories is an error, and a missing
// one is not.
func TestSourcesChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if _, err := sourcesChanged(file); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sourcesChanged(file); err == nil {
		t.Error("no error for a file")
	}
}

// TestStampsSeeChangesInPlace appends to a file of apt's configuration, which changes no directory.
func TestStampsSeeChangesInPlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "preferences.d", "pins")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("Package: a\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	before := stamps(dir)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("Pin: version 1\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if stamps(dir) == before {
		t.Error("the change is not seen")
	}
}
