package edits_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

type setup = func(t *testing.T, dir string)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holding puts a file f with content into the directory of a case.
func holding(content string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o640))
	}
}

// holds checks the content and the mode of the file f.
func holds(content string, mode os.FileMode) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, "f")
		got, err := os.ReadFile(path)
		check(t, err)
		info, err := os.Lstat(path)
		check(t, err)
		if string(got) != content || info.Mode() != mode {
			t.Errorf("the file is %.200q with mode %v, not %.200q with %v", got, info.Mode(), content, mode)
		}
	}
}

// in returns the properties of a part of the file f.
func in(p properties) func(dir string) typetest.Properties {
	return func(dir string) typetest.Properties {
		out := typetest.Properties{"name": "part", "path": filepath.Join(dir, "f")}
		for key, value := range p {
			out[key] = value
		}
		return out
	}
}

// created adds create and the attributes of a new file.
func created(t testing.TB, p properties) func(dir string) typetest.Properties {
	user, group := hosttest.Owner(t)
	out := properties{"create": true, "owner": user, "group": group, "mode": "0604"}
	for key, value := range p {
		out[key] = value
	}

	return in(out)
}

// rewritten changes the file f in place, as an editor or sed would not.
func rewritten(content string) func(t testing.TB, dir string) {
	return func(t testing.TB, dir string) {
		check(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o600))
	}
}

// renamed replaces the file f, as sed -i and most editors do.
func renamed(content string) func(t testing.TB, dir string) {
	return func(t testing.TB, dir string) {
		check(t, os.WriteFile(filepath.Join(dir, "new"), []byte(content), 0o600))
		check(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")))
	}
}

func removed(t testing.TB, dir string) { check(t, os.Remove(filepath.Join(dir, "f"))) }

// unsuitable are the cases of a file that is not edited, for a part with properties.
func unsuitable(t *testing.T, p properties) []typetest.Case {
	return []typetest.Case{
		{Name: "no file", Properties: in(p), Error: "file does not exist (set create: true, or manage it with a file resource before this one)"},
		{Name: "no directory", Properties: func(dir string) typetest.Properties {
			out := created(t, p)(dir)
			out["path"] = filepath.Join(dir, "d", "f")
			return out
		}, Error: "is not a directory, it does not exist"},
		{Name: "a link", Setup: func(t *testing.T, dir string) {
			check(t, os.WriteFile(filepath.Join(dir, "target"), []byte("x\n"), 0o600))
			check(t, os.Symlink("target", filepath.Join(dir, "f")))
		}, Properties: in(p), Error: "is a symbolic link, which is not followed: set path to the file that it leads to"},
		{Name: "a directory", Setup: func(t *testing.T, dir string) { check(t, os.Mkdir(filepath.Join(dir, "f"), 0o700)) }, Properties: in(p), Error: "is a directory: it is not a regular file"},
		{Name: "a fifo", Setup: func(t *testing.T, dir string) { check(t, unix.Mkfifo(filepath.Join(dir, "f"), 0o600)) }, Properties: in(p), Error: "is a special file: it is not a regular file"},
		{Name: "a NUL byte", Setup: holding("a\x00b\n"), Properties: in(p), Error: "has a NUL byte"},
		{Name: "UTF-16", Setup: holding("\xff\xfea\x00"), Properties: in(p), Error: "is UTF-16"},
		{Name: "special bits", Setup: func(t *testing.T, dir string) {
			holding("x\n")(t, dir)
			check(t, unix.Chmod(filepath.Join(dir, "f"), 0o4755))
		}, Properties: in(p), Error: "an edit would lose its special bits"},
	}
}

func TestLineContract(t *testing.T) {
	port := properties{"line": "Port 2222", "match": "^#?Port "}
	typetest.Run(t, typetest.Config{Type: lineType(), Cases: append(unsuitable(t, properties{"line": "a"}), []typetest.Case{
		{Name: "changed", Setup: holding(sshd), Properties: in(port), Message: "Would have changed line 2", Check: holds("# sshd\nPort 2222\nPermitRootLogin yes\nMatch User git\n", 0o640)},
		{Name: "added", Setup: holding("a\n"), Properties: in(port), Message: "Would have added a line after line 1", Drift: rewritten("Port 1\n")},
		{Name: "removed", Setup: holding(sshd), Properties: in(properties{"ensure": "absent", "match": "^#"}), Message: "Would have removed lines 1 and 2", Drift: renamed("#\n")},
		{Name: "stable", Setup: holding("Port 2222\n"), Properties: in(port), Check: holds("Port 2222\n", 0o640)},
		{Name: "created", Properties: created(t, port), Message: "Would have created the file", Check: holds("Port 2222\n", 0o604)},
		{Name: "created again", Properties: created(t, port), Message: "Would have created the file", Drift: removed},
		{Name: "there already", Setup: holding(""), Properties: created(t, port), Message: "Would have added a line", Check: holds("Port 2222\n", 0o640)},
		{Name: "absent without a file", Properties: in(properties{"ensure": "absent", "line": "a"})},
		{Name: "validated", Setup: holding("a\n"), Properties: in(properties{"line": "b", "validate": "grep -q b {}"}), Message: "Would have added a line after line 1, validated first", Check: holds("a\nb\n", 0o640)},
		{Name: "grows in each run", Setup: holding("a\n"), Properties: in(properties{"match": "^(a+)$", "line": `\1a`, "expand": true}), Error: "it would change its own result in each run"},
		{Name: "the name is the path", Setup: holding("a\n"), Properties: func(dir string) typetest.Properties {
			return typetest.Properties{"name": filepath.Join(dir, "f"), "line": "b"}
		}, Message: "Would have added a line after line 1"},
	}...)})
}
