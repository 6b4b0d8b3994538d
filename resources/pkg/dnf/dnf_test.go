package dnf

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/testing/pkgtest"
)

// TestParseRows covers the table of the query format.
func TestParseRows(t *testing.T) {
	rows := parseRows(pkgtest.Captured(t, "status.txt"))
	if want := (row{"muster-test", "1", "0.9", "1", "noarch", "1795330755", "none", "http://example.net/", "a test"}); len(rows) != 3 || rows[0] != want {
		t.Fatalf("%+v", rows)
	}
	p := New()
	for name, want := range map[string]string{"muster-test": "0.9-1", "muster-test.noarch": "0.9-1", "muster-test.i686": "absent", "muster-real": "1.0-1", "nosuch": "absent"} {
		if got := p.stateOf(name, rows); got.Ensure != want || got.Name != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	want := &pkg.Metadata{
		Name: "muster-test", Version: "0.9-1", Arch: "noarch", License: "none", URL: "http://example.net/", Summary: "a test", Provider: "dnf",
		Full: "1:0.9-1", Extended: map[string]any{"epoch": "1", "release": "1"},
	}
	if got := p.stateOf("muster-test", rows).Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := p.stateOf("muster-test", rows).ChangedAt; !got.Equal(time.Unix(1795330756, 0)) {
		t.Errorf("it was installed before the end of %v", got)
	}
	candidates := parseRows(pkgtest.Captured(t, "candidates.txt"))
	if len(candidates) != 1 || candidates[0].full() != "1:0.9-1" {
		t.Errorf("%+v", candidates)
	}
	// The example of the specification.
	if rows := parseRows([]string{"zsh 0 5.8 9.el9 x86_64\tMIT\thttp://zsh.sourceforge.net/\tPowerful shell"}); len(rows) != 1 || p.stateOf("zsh", rows).Ensure != "5.8-9.el9" {
		t.Errorf("%+v", rows)
	}
}

func FuzzParseRows(f *testing.F) {
	f.Add(strings.Join(pkgtest.Captured(f, "status.txt"), "\n"))
	f.Add("a 0 1 1 x\t\t\t\na 0 1 2 x\t\t\t")
	f.Fuzz(func(t *testing.T, text string) {
		rows := parseRows(strings.Split(text, "\n"))
		for _, r := range rows {
			if state := New().stateOf(r.name, rows); state.Metadata == nil {
				t.Errorf("%+v is not found", r)
			}
		}
	})
}

// TestCommands covers the commands and flags of the operations.
func TestCommands(t *testing.T) {
	request := func(action pkg.Action, name, version string) pkg.Request {
		return pkg.Request{Action: action, Name: name, Version: version}
	}
	for _, c := range []struct {
		requests []pkg.Request
		want     []string
	}{
		{[]pkg.Request{request(pkg.Install, "a", "present")}, []string{"dnf install -y a"}},
		{[]pkg.Request{request(pkg.Install, "a", "latest")}, []string{"dnf install -y a"}},
		{[]pkg.Request{request(pkg.Install, "a", "1.0-1")}, []string{"dnf install -y a-1.0-1"}},
		{[]pkg.Request{request(pkg.Upgrade, "a", "latest")}, []string{"dnf install -y --best a"}},
		{[]pkg.Request{request(pkg.Upgrade, "a", "1:2.0")}, []string{"dnf install -y a-1:2.0"}},
		{[]pkg.Request{request(pkg.Downgrade, "a", "1.0")}, []string{"dnf downgrade -y a-1.0"}},
		{[]pkg.Request{request(pkg.Uninstall, "a", "absent")}, []string{"dnf remove -y a"}},
		{[]pkg.Request{request(pkg.Purge, "a", "purged")}, []string{"dnf remove -y a"}},
		{[]pkg.Request{{Action: pkg.Install, Name: "a", Version: "present", Recommends: new(bool)}, request(pkg.Install, "b", "present")}, []string{"dnf install -y b", "dnf install -y --setopt=install_weak_deps=false a"}},
		{[]pkg.Request{{Action: pkg.Upgrade, Name: "a", Version: "2.0", Held: true}, request(pkg.Hold, "a", "2.0"), {Action: pkg.Uninstall, Name: "b", Held: true}, request(pkg.Unhold, "b", "absent")}, []string{"dnf remove -y b", "dnf install -y --disableplugin=versionlock a-2.0"}},
		{[]pkg.Request{request(pkg.Install, "a.i686", "1.0-1")}, []string{"dnf install -y a-1.0-1.i686"}},
		{[]pkg.Request{request(pkg.Install, "a.i686", "1.0")}, []string{"dnf install -y a-1.0-*.i686"}},
		{[]pkg.Request{request(pkg.Install, "python3.11", "3.11.2")}, []string{"dnf install -y python3.11-3.11.2"}},
		{
			[]pkg.Request{request(pkg.Install, "a", "present"), request(pkg.Upgrade, "b", "latest"), request(pkg.Uninstall, "c", ""), request(pkg.Install, "d", "1.0"), request(pkg.Downgrade, "e", "1.0")},
			[]string{"dnf remove -y c", "dnf downgrade -y e-1.0", "dnf install -y a d-1.0", "dnf install -y --best b"},
		},
	} {
		var got []string
		for _, s := range steps(c.requests) {
			got = append(got, strings.Join(s.argv("-y"), " "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v:\n%q, not\n%q", c.requests, got, c.want)
		}
	}
}

// TestFailedScripts finds the packages of a shell script and of a Lua script that failed together.
func TestFailedScripts(t *testing.T) {
	said := command.Output{Head: []byte(`error: lua script failed: [string "%post(postlua-1.0-1.noarch)"]:1: x
Error in POSTIN scriptlet in rpm package postlua
warning: %post(post1-1.0-1.noarch) scriptlet failed, exit status 3
Error in POSTIN scriptlet in rpm package post1
`)}
	var f *pkg.Failure
	err := pkg.Explain([]string{"dnf", "install", "-y", "postlua", "post1"}, command.Result{ExitCode: 1, Stdout: said}, remedies())
	if !errors.As(err, &f) || f.Err != pkg.ErrScript || len(f.Packages) != 2 || !slices.Contains(f.Packages, "postlua") || !slices.Contains(f.Packages, "post1") {
		t.Errorf("%v", err)
	}
}

func TestIsManageable(t *testing.T) {
	dir := t.TempDir()
	spec := func(version string) *pkg.Spec { return &pkg.Spec{Common: model.Common{Name: "zsh", Ensure: version}} }
	if ok, _, err := (&Provider{bin: dir}).IsManageable(nil, spec("1.0-1.el9")); ok || err == nil || !strings.Contains(err.Error(), "dnf") {
		t.Errorf("%v, %v", ok, err)
	}
	for _, program := range []string{"dnf", "rpm"} {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if ok, _, err := (&Provider{bin: dir}).IsManageable(nil, spec("1.0-1.el9")); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	next := spec("present")
	next.TargetRelease = "next"
	remedy := "target_release is for apt, repositories of dnf have none (enable the repository in a file of /etc/yum.repos.d, and name the version in ensure)"
	if ok, _, err := (&Provider{bin: dir}).IsManageable(nil, next); ok || err == nil || err.Error() != remedy {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, _, err := (&Provider{bin: dir}).IsManageable(nil, spec("1.0-1.noarch")); ok || err == nil || !strings.Contains(err.Error(), "name the package zsh.noarch, with ensure 1.0-1") {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestVersionCmp covers the tables of versions, of formats and of return values, and the special order
// of rpm.
func TestVersionCmp(t *testing.T) {
	pkgtest.Versions(t, New(), []pkgtest.Order{
		{A: "1.0", B: "2.0", Want: -1},
		{A: "1.10", B: "1.9", Want: 1},
		{A: "1.0", B: "1.0.1", Want: -1},
		{A: "1.0-1", B: "1.0-2", Want: -1},
		{A: "1.0a", B: "1.0b", Want: -1},
		{A: "01", B: "1", Want: -1},
		{A: "1.0.0", B: "1.0", Want: 1},
		{A: "1.0", B: "1.0", Want: 0},
		{A: "5.8-9.el9", B: "0:5.8-9.el9", Want: 0},
		{A: "1:2.0-3.fc39", B: "3.0-1", Want: 1},
		{A: "0:1.0.0-1.el9", B: "1.0.0-1.el9", Want: 0},
		{A: "1.0", B: "1.0-1", Want: 0},
		{A: "1.0-9", B: "1.0", Want: 0},
		{A: "1.0~rc1", B: "1.0", Want: -1},
		{A: "1.0~~", B: "1.0~", Want: -1},
		{A: "1.0~rc1", B: "1.0~rc2", Want: -1},
		{A: "1.0^git1", B: "1.0", Want: 1},
		{A: "1.0^git1", B: "1.0.1", Want: -1},
		{A: "1.0^git1", B: "1.0^git2", Want: -1},
		{A: "1.0~rc1^git1", B: "1.0~rc1", Want: 1},
		{A: "1.0a", B: "1.01", Want: -1},
		{A: "1.0", B: "1.a", Want: 1},
		{A: "99999999999999999999.1", B: "99999999999999999998.2", Want: 1},
	}, []string{"", "x:1", "1:", "-1"})
}

func FuzzVersionCmp(f *testing.F) {
	f.Add("1:1.0~rc1-1", "1.0^a-1")
	f.Add("01", "1.")
	pkgtest.FuzzVersions(f, New())
}
