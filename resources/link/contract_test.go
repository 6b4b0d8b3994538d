package link_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/link"
	"github.com/musterfleet/muster/testing/typetest"
)

type setup = func(t *testing.T, dir string)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func withLink(target string) setup {
	return func(t *testing.T, dir string) { t.Helper(); check(t, os.Symlink(target, filepath.Join(dir, "x"))) }
}

func withFile(name string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte("content"), 0o600))
	}
}

func leads(target string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		if got, err := os.Readlink(filepath.Join(dir, "x")); got != target || err != nil {
			t.Errorf("leads to %q, %v, want %q", got, err, target)
		}
	}
}

// to returns the properties of the link x.
func to(target string, more typetest.Properties) func(string) typetest.Properties {
	return func(dir string) typetest.Properties {
		p := typetest.Properties{"name": filepath.Join(dir, "x")}
		if target != "" {
			p["target"] = target
		}
		for key, value := range more {
			p[key] = value
		}
		return p
	}
}

func TestContract(t *testing.T) {
	absent, force := typetest.Properties{"ensure": "absent"}, typetest.Properties{"force": true}
	const created = "Would have created the link"
	fifo := func(t *testing.T, dir string) { t.Helper(); check(t, unix.Mkfifo(filepath.Join(dir, "x"), 0o600)) }
	relink := func(t testing.TB, dir string) {
		check(t, os.Remove(filepath.Join(dir, "x")))
		check(t, os.Symlink("elsewhere", filepath.Join(dir, "x")))
	}
	typetest.Run(t, typetest.Config{Type: link.New(link.Posix{}), Cases: []typetest.Case{
		{Name: "same target", Setup: withLink("a/../b"), Properties: to("a/../b", nil)},
		{Name: "nothing", Properties: to("missing", nil), Message: created, Check: leads("missing")},
		{Name: "changed by hand", Properties: to("missing", nil), Message: created, Drift: relink},
		{Name: "absolute target", Properties: to("/etc/passwd", nil), Message: created, Check: leads("/etc/passwd")},
		{Name: "link elsewhere", Setup: withLink("release-1"), Properties: to("release-2", nil), Message: "Would have changed the target from release-1 to release-2", Check: leads("release-2")},
		{Name: "link elsewhere, to a directory", Setup: withLink("/tmp"), Properties: to("/", nil), Message: "Would have changed the target from /tmp to /", Check: leads("/")},
		{Name: "file", Setup: withFile("x"), Properties: to("t", nil), Error: "is a file: set force: true to replace it by the link"},
		{Name: "file, force", Setup: withFile("x"), Properties: to("t", force), Message: "Would have replaced the file by a link", Check: leads("t")},
		{Name: "empty directory", Setup: mkdir("x"), Properties: to("t", nil), Error: "is a directory: set force: true to replace it by the link"},
		{Name: "empty directory, force", Setup: mkdir("x"), Properties: to("t", force), Message: "Would have replaced the directory by a link", Check: leads("t")},
		{Name: "directory with entries", Setup: withFile("x/f"), Properties: to("t", nil), Error: "is a directory with entries, which a link does not replace"},
		{Name: "directory with entries, force", Setup: withFile("x/f"), Properties: to("t", force), Error: "is a directory with entries, which a link does not replace"},
		{Name: "fifo, force", Setup: fifo, Properties: to("t", force), Error: "which a link does not replace: remove it"},
		{Name: "no directory", Properties: func(dir string) typetest.Properties { return typetest.Properties{"name": dir + "/no/x", "target": "t"} }, Error: "/no is not a directory, it does not exist"},
		{Name: "below a file", Setup: withFile("f"), Properties: func(dir string) typetest.Properties { return typetest.Properties{"name": dir + "/f/x", "target": "t"} }, Error: "/f is not a directory"},
		{Name: "unknown owner", Properties: to("t", typetest.Properties{"owner": "nobody-of-that-name"}), Error: "nobody-of-that-name"},
		{Name: "absent, link", Setup: withLink("/etc/passwd"), Properties: to("", absent), Message: "Would have removed the link", Check: isGone},
		{Name: "absent, dangling link", Setup: withLink("missing"), Properties: to("", absent), Message: "Would have removed the link", Check: isGone},
		{Name: "absent, nothing", Properties: to("", absent)},
		{Name: "absent, file", Setup: withFile("x"), Properties: to("", absent), Error: "is no link but a file: a `file` with ensure: absent removes it"},
		{Name: "absent, directory", Setup: mkdir("x"), Properties: to("", absent), Error: "is no link but a directory"},
	}, ReadOnly: typetest.Only("getent ")})
}

func mkdir(name string) setup {
	return func(t *testing.T, dir string) { t.Helper(); check(t, os.Mkdir(filepath.Join(dir, name), 0o755)) }
}

func isGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(dir, "x")); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error("the target is gone")
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec link.Spec
		want string
	}{
		"no target":         {link.Spec{}, "`target` is required unless ensure is absent"},
		"control character": {link.Spec{Target: "a\nb"}, "target must not contain control characters"},
		"NUL":               {link.Spec{Target: "a\x00b"}, "target must not contain control characters"},
		"too long":          {link.Spec{Target: strings.Repeat("x", 4096)}, "target has 4096 bytes, the system allows 4095"},
		"itself":            {link.Spec{Target: "x"}, "/d/x would lead to itself"},
		"itself, absolute":  {link.Spec{Target: "/d/./x"}, "/d/x would lead to itself"},
		"owner":             {link.Spec{Target: "t", Owner: "99999999999"}, "invalid owner"},
		"group":             {link.Spec{Target: "t", Group: "99999999999"}, "invalid group"},
		"sound":             {link.Spec{Target: "../t", Owner: "root", Group: "0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.spec.Name, c.spec.Ensure = "/d/x", "present"
			if got := c.spec.Validate().Error(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	trailing := link.Spec{Target: "t"}
	trailing.Name = "/d/x/"
	if got := trailing.Validate().Error(); !strings.Contains(got, "must be clean") {
		t.Error(got)
	}
	absent := link.Spec{Target: "t", Force: true, Owner: "root", Group: "root"}
	absent.Name, absent.Ensure = "/d/x", "absent"
	if got := absent.Warnings(); len(got) != 4 {
		t.Error(got)
	}
}
