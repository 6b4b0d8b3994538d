package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

func fileType() *resource.Type { return file.New(file.Posix{}) }

// owned gives properties of the path name in the case's directory, with
// attributes that every user may set, and what more is given.
func owned(t *testing.T, name string, more typetest.Properties) func(string) typetest.Properties {
	user, group := hosttest.Owner(t)

	return func(dir string) typetest.Properties {
		p := typetest.Properties{"name": filepath.Join(dir, name), "owner": user, "group": group, "mode": "0644"}
		for key, value := range more {
			p[key] = value
		}
		return p
	}
}

func absent(name string, more typetest.Properties) func(string) typetest.Properties {
	return func(dir string) typetest.Properties {
		p := typetest.Properties{"name": filepath.Join(dir, name), "ensure": "absent"}
		for key, value := range more {
			p[key] = value
		}
		return p
	}
}

type setup = func(t *testing.T, dir string)

func all(setups ...setup) setup {
	return func(t *testing.T, dir string) {
		for _, s := range setups {
			s(t, dir)
		}
	}
}

func withFile(name, content string, mode os.FileMode) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o600))
		check(t, unix.Chmod(path, uint32(mode)))
	}
}

func withDir(name string, mode uint32) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		check(t, unix.Chmod(filepath.Join(dir, name), mode))
	}
}

func withLink(name, target string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.Symlink(target, filepath.Join(dir, name)))
	}
}

func withHardLink(name, target string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.Link(filepath.Join(dir, target), filepath.Join(dir, name)))
	}
}

// openTo makes a directory that everybody may write to.
func openTo(name string) setup { return withDir(name, 0o777) }

func withFifo(name string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		check(t, unix.Mkfifo(filepath.Join(dir, name), 0o644))
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holds checks that a regular file with content and mode is at name.
func holds(name, content string, mode uint32) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		var st unix.Stat_t
		check(t, unix.Lstat(filepath.Join(dir, name), &st))
		if st.Mode != unix.S_IFREG|mode {
			t.Errorf("%s has mode %o, not that of a file with %o", name, st.Mode, mode)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		check(t, err)
		if string(got) != content {
			t.Errorf("%s holds %q, not %q", name, got, content)
		}
	}
}

func isDir(name string, mode uint32) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		var st unix.Stat_t
		check(t, unix.Lstat(filepath.Join(dir, name), &st))
		if st.Mode != unix.S_IFDIR|mode {
			t.Errorf("%s has mode %o, not that of a directory with %o", name, st.Mode, mode)
		}
	}
}

func isGone(name string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func TestContract(t *testing.T) {
	cases := absentCases()
	cases = append(cases, directoryCases(t)...)
	cases = append(cases, contentCases(t)...)
	cases = append(cases, attributeCases(t)...)
	cases = append(cases, linkCases(t)...)
	cases = append(cases, unsafeCases(t)...)
	cases = append(cases, validateCases(t)...)
	cases = append(cases, driftCases(t)...)
	typetest.Run(t, typetest.Config{Type: fileType(), ReadOnly: typetest.Only("getent "), Cases: cases})
}

func absentCases() []typetest.Case {
	const removed = "Would have removed the file"
	force := typetest.Properties{"force": true}
	full := all(withFile("d/a", "x", 0o644), withFile("d/sub/b", "y", 0o600))

	return []typetest.Case{
		{Name: "absent, absent", Properties: absent("x", nil)},
		{Name: "absent, attributes are not consulted", Properties: absent("x", typetest.Properties{"owner": "no-such-user", "group": "no-such-group", "mode": "0644"})},
		{Name: "absent below a file", Setup: withFile("f", "", 0o644), Properties: absent("f/x", nil)},
		{Name: "absent, file", Setup: withFile("x", "1", 0o644), Properties: absent("x", nil), Message: removed, Check: isGone("x")},
		{Name: "absent, file, force", Setup: withFile("x", "1", 0o644), Properties: absent("x", force), Message: removed, Check: isGone("x")},
		{Name: "absent, link to a file", Setup: all(withFile("t", "1", 0o644), withLink("x", "t")), Properties: absent("x", nil), Message: removed, Check: all(isGone("x"), holds("t", "1", 0o644))},
		{Name: "absent, dangling link", Setup: withLink("x", "nowhere"), Properties: absent("x", nil), Message: removed, Check: isGone("x")},
		{Name: "absent, fifo", Setup: withFifo("x"), Properties: absent("x", nil), Message: removed, Check: isGone("x")},
		{Name: "absent, empty directory", Setup: withDir("x", 0o755), Properties: absent("x", nil), Message: "Would have removed the directory", Check: isGone("x")},
		{Name: "absent, directory that is not empty", Setup: full, Properties: absent("d", nil), Error: "directory is not empty, force: true is required", Check: holds("d/sub/b", "y", 0o600)},
		{Name: "absent, directory that is not empty, force", Setup: full, Properties: absent("d", force), Message: "Would have recursively removed the directory", Check: isGone("d")},
		{
			Name: "absent, link to a directory, force", Setup: all(full, withLink("x", "d")), Properties: absent("x", force),
			Message: removed, Check: all(isGone("x"), holds("d/a", "x", 0o644), holds("d/sub/b", "y", 0o600)),
		},
		{
			Name: "a directory with a link to another, force", Setup: all(full, withDir("x", 0o755), withLink("x/l", "../d")), Properties: absent("x", force),
			Message: "Would have recursively removed the directory", Check: all(isGone("x"), holds("d/a", "x", 0o644)),
		},
	}
}

func directoryCases(t *testing.T) []typetest.Case {
	wants := func(mode string) func(string) typetest.Properties {
		return owned(t, "x", typetest.Properties{"ensure": "directory", "mode": mode})
	}

	return []typetest.Case{
		{Name: "directory, absent", Properties: wants("0750"), Message: "Would have created directory", Check: isDir("x", 0o750)},
		{
			Name: "directory, absent with its parents", Properties: owned(t, "a/b/c", typetest.Properties{"ensure": "directory", "mode": "0700"}),
			Message: "Would have created directory", Check: all(isDir("a", 0o755), isDir("a/b/c", 0o700)),
		},
		{Name: "directory, directory", Setup: withDir("x", 0o755), Properties: wants("0755")},
		{Name: "directory, other mode", Setup: withDir("x", 0o700), Properties: wants("755"), Message: "Would have updated attributes", Check: isDir("x", 0o755)},
		{Name: "directory, special bits count for nothing", Setup: withDir("x", 0o1755), Properties: wants("0755"), Check: isDir("x", 0o1755)},
		{Name: "directory, special bits are kept", Setup: withDir("x", 0o1700), Properties: wants("0755"), Message: "Would have updated attributes", Check: isDir("x", 0o1755)},
		{Name: "directory, file", Setup: withFile("x", "1", 0o644), Properties: wants("0755"), Error: "path exists as a file", Check: holds("x", "1", 0o644)},
		{Name: "directory, fifo", Setup: withFifo("x"), Properties: wants("0755"), Error: "path exists as a fifo, socket or device"},
		{Name: "directory below a file", Setup: withFile("f", "1", 0o644), Properties: owned(t, "f/a/b", typetest.Properties{"ensure": "directory"}), Error: "f is not a directory"},
		{Name: "directory, link to one", Setup: all(withDir("d", 0o755), withLink("x", "d")), Properties: wants("0755")},
		{
			Name: "directory, link to one with another mode", Setup: all(withDir("d", 0o700), withLink("x", "d")), Properties: wants("0755"),
			Error: "is a symbolic link to a directory with other attributes, and a link is not followed; manage the directory itself: mode is 0700, not 0755", Check: isDir("d", 0o700),
		},
		{Name: "directory, link to a file", Setup: all(withFile("f", "1", 0o644), withLink("x", "f")), Properties: wants("0755"), Error: "path exists as a symbolic link to a file"},
		{Name: "directory, dangling link", Setup: withLink("x", "nowhere"), Properties: wants("0755"), Error: "path exists as a symbolic link that leads nowhere"},
		{Name: "directory, link to itself", Setup: withLink("x", "x"), Properties: wants("0755"), Error: "path exists as a symbolic link that leads nowhere"},
	}
}

func contentCases(t *testing.T) []typetest.Case {
	const created, updated = "Would have created the file", "Would have updated the file"
	hello := owned(t, "x", typetest.Properties{"content": "hello\n"})
	copied := owned(t, "x", typetest.Properties{"source": "src/f"})
	empty := owned(t, "x", typetest.Properties{"content": ""})
	exact := "  \r\nä€😀\tend \n\n "

	return []typetest.Case{
		{Name: "content, absent", Properties: hello, Message: created, Check: holds("x", "hello\n", 0o644)},
		{Name: "contents, absent", Properties: owned(t, "x", typetest.Properties{"contents": "hello\n"}), Message: created, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, the same", Setup: withFile("x", "hello\n", 0o644), Properties: hello},
		{Name: "content, other", Setup: withFile("x", "hullo\n", 0o644), Properties: hello, Message: updated, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, other mode", Setup: withFile("x", "hello\n", 0o600), Properties: hello, Message: updated, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, setuid is another mode", Setup: withFile("x", "hello\n", 0o4644), Properties: hello, Message: updated, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, both other", Setup: withFile("x", "", 0o600), Properties: hello, Message: updated, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, empty, absent", Properties: empty, Message: created, Check: holds("x", "", 0o644)},
		{Name: "content, empty, file with some", Setup: withFile("x", "old", 0o644), Properties: empty, Message: updated, Check: holds("x", "", 0o644)},
		{Name: "content, byte for byte", Properties: owned(t, "x", typetest.Properties{"content": exact}), Message: created, Check: holds("x", exact, 0o644)},
		{Name: "content, directory", Setup: withDir("x", 0o755), Properties: hello, Error: "path exists as a directory", Check: isDir("x", 0o755)},
		{Name: "content, fifo", Setup: withFifo("x"), Properties: hello, Error: "path exists as a fifo, socket or device"},
		{Name: "content, no parent", Properties: owned(t, "no/x", typetest.Properties{"content": "a"}), Error: "/no is not a directory, it does not exist"},
		{Name: "content, parent is a file", Setup: withFile("f", "1", 0o644), Properties: owned(t, "f/x", typetest.Properties{"content": "a"}), Error: "/f is not a directory"},
		{Name: "source, absent", Setup: withFile("src/f", "from\n", 0o600), Properties: copied, Message: created, Check: holds("x", "from\n", 0o644)},
		{Name: "source, the same", Setup: all(withFile("src/f", "from\n", 0o600), withFile("x", "from\n", 0o644)), Properties: copied},
		{Name: "source, other", Setup: all(withFile("src/f", "from\n", 0o600), withFile("x", "old\n", 0o644)), Properties: copied, Message: updated, Check: holds("x", "from\n", 0o644)},
		{Name: "source, a link", Setup: all(withFile("f", "from\n", 0o600), withDir("src", 0o755), withLink("src/f", "../f")), Properties: copied, Message: created, Check: holds("x", "from\n", 0o644)},
		{
			Name: "source, absolute", Setup: withFile("elsewhere", "abs", 0o600), Message: created, Check: holds("x", "abs", 0o644),
			Properties: func(dir string) typetest.Properties {
				p := owned(t, "x", nil)(dir)
				p["source"] = filepath.Join(dir, "elsewhere")
				return p
			},
		},
		{Name: "source, missing", Properties: copied, Error: "src/f: file does not exist (correct `source`"},
		{Name: "source, a directory", Setup: withDir("src/f", 0o755), Properties: copied, Error: "src/f is a directory: it is not a regular file"},
		{Name: "source, a fifo", Setup: all(withDir("src", 0o755), withFifo("src/f")), Properties: copied, Error: "src/f is a special file: it is not a regular file"},
	}
}

func attributeCases(t *testing.T) []typetest.Case {
	const created, updated = "Would have created an empty file with requested attributes", "Would have updated attributes"
	attrs := owned(t, "x", nil)

	return []typetest.Case{
		{Name: "attributes, the same", Setup: withFile("x", "kept", 0o644), Properties: attrs, Check: holds("x", "kept", 0o644)},
		{Name: "attributes, other mode", Setup: withFile("x", "kept", 0o600), Properties: attrs, Message: updated, Check: holds("x", "kept", 0o644)},
		{Name: "attributes, setuid is another mode", Setup: withFile("x", "kept", 0o4644), Properties: attrs, Message: updated, Check: holds("x", "kept", 0o644)},
		{Name: "attributes, null content", Setup: withFile("x", "kept", 0o600), Properties: owned(t, "x", typetest.Properties{"content": nil}), Message: updated, Check: holds("x", "kept", 0o644)},
		{Name: "attributes, absent", Properties: attrs, Message: created, Check: holds("x", "", 0o644)},
		{Name: "attributes, no parent", Properties: owned(t, "no/x", nil), Error: "/no is not a directory"},
		{Name: "attributes, directory", Setup: withDir("x", 0o755), Properties: attrs, Error: "path exists as a directory"},
		{Name: "attributes, fifo", Setup: withFifo("x"), Properties: attrs, Error: "path exists as a fifo, socket or device"},
		{Name: "attributes, link", Setup: all(withFile("t", "kept", 0o600), withLink("x", "t")), Properties: attrs, Error: "is a symbolic link: without content or source only attributes are managed", Check: holds("t", "kept", 0o600)},
		{Name: "attributes, several names", Setup: all(withFile("t", "kept", 0o600), withHardLink("x", "t")), Properties: attrs, Error: "x has several names (hard links): its owner and mode are not changed", Check: holds("t", "kept", 0o600)},
		{Name: "attributes, several names, the same", Setup: all(withFile("t", "kept", 0o644), withHardLink("x", "t")), Properties: attrs, Check: holds("t", "kept", 0o644)},
		{Name: "content, several names", Setup: all(withFile("t", "kept", 0o600), withHardLink("x", "t")), Properties: owned(t, "x", typetest.Properties{"content": "new"}), Message: "Would have updated the file", Check: all(holds("x", "new", 0o644), holds("t", "kept", 0o600))},
		{Name: "mode 644", Setup: withFile("x", "", 0o600), Properties: owned(t, "x", typetest.Properties{"mode": "644"}), Message: updated, Check: holds("x", "", 0o644)},
		{Name: "mode 0o755", Setup: withFile("x", "", 0o600), Properties: owned(t, "x", typetest.Properties{"mode": "0o755"}), Message: updated, Check: holds("x", "", 0o755)},
		{Name: "mode 0O700", Setup: withFile("x", "", 0o600), Properties: owned(t, "x", typetest.Properties{"mode": "0O700"}), Message: updated, Check: holds("x", "", 0o700)},
		{Name: "mode 0", Setup: withFile("x", "", 0o600), Properties: owned(t, "x", typetest.Properties{"mode": "0", "ensure": "present"}), Message: updated},
	}
}

func linkCases(t *testing.T) []typetest.Case {
	const replaced = "Would have replaced the symbolic link with the file"
	hello := owned(t, "x", typetest.Properties{"content": "hello\n"})

	return []typetest.Case{
		{Name: "content, link to a file", Setup: all(withFile("t", "kept", 0o600), withLink("x", "t")), Properties: hello, Message: replaced, Check: all(holds("x", "hello\n", 0o644), holds("t", "kept", 0o600))},
		{Name: "content, link to the same content", Setup: all(withFile("t", "hello\n", 0o644), withLink("x", "t")), Properties: hello, Message: replaced, Check: holds("x", "hello\n", 0o644)},
		{Name: "content, link to a directory", Setup: all(withFile("d/a", "kept", 0o600), withLink("x", "d")), Properties: hello, Message: replaced, Check: all(holds("x", "hello\n", 0o644), holds("d/a", "kept", 0o600))},
		{Name: "content, dangling link", Setup: withLink("x", "nowhere"), Properties: hello, Message: replaced, Check: all(holds("x", "hello\n", 0o644), isGone("nowhere"))},
		{Name: "content, through a linked parent", Setup: all(withDir("d", 0o755), withLink("l", "d")), Properties: owned(t, "l/x", typetest.Properties{"content": "a"}), Message: "Would have created the file", Check: holds("d/x", "a", 0o644)},
	}
}

// unsafeCases are below a directory that every user may write to. In it, app is a link of an unknown
// user, and there is a directory of an unknown user.
func unsafeCases(t *testing.T) []typetest.Case {
	const refused = "unsafe path: "
	there := all(openTo("o"), withFile("etc/x", "kept", 0o600), withFile("o/d/x", "kept", 0o600), withLink("o/app", "../etc"))
	kept := all(holds("etc/x", "kept", 0o600), holds("o/d/x", "kept", 0o600))
	directory := typetest.Properties{"ensure": "directory"}
	source := func(dir string) typetest.Properties {
		return owned(t, "copy", typetest.Properties{"source": dir + "/o/app/x"})(dir)
	}

	return []typetest.Case{
		{Name: "unsafe, content by a link", Setup: there, Properties: owned(t, "o/app/x", typetest.Properties{"content": "a"}), Error: refused, Check: kept},
		{Name: "unsafe, content", Setup: there, Properties: owned(t, "o/d/x", typetest.Properties{"content": "a"}), Error: refused, Check: kept},
		{Name: "unsafe, attributes by a link", Setup: there, Properties: owned(t, "o/app/x", nil), Error: refused, Check: kept},
		{Name: "unsafe, directory by a link", Setup: there, Properties: owned(t, "o/app/new/deep", directory), Error: refused, Check: all(kept, isGone("etc/new"))},
		{Name: "unsafe, removal by a link", Setup: there, Properties: absent("o/app/x", nil), Error: refused, Check: kept},
		{Name: "unsafe, forced removal by a link", Setup: all(there, withDir("etc/d", 0o755)), Properties: absent("o/app/d", typetest.Properties{"force": true}), Error: refused, Check: isDir("etc/d", 0o755)},
		{Name: "unsafe, source by a link", Setup: there, Properties: source, Error: refused, Check: isGone("copy")},
		{Name: "in a directory of everybody", Setup: there, Properties: owned(t, "o/x", typetest.Properties{"content": "a"}), Message: "Would have created the file", Check: holds("o/x", "a", 0o644)},
	}
}

// driftCases change a managed file by hand, in every way.
func driftCases(t *testing.T) []typetest.Case {
	const created = "Would have created the file"
	hello := owned(t, "d/x", typetest.Properties{"content": "hello"})
	copied := func(dir string) typetest.Properties {
		return owned(t, "x", typetest.Properties{"source": dir + "/src/f"})(dir)
	}
	directory := owned(t, "x", typetest.Properties{"ensure": "directory", "mode": "0750"})
	change := func(do func(dir string) error) func(testing.TB, string) {
		return func(t testing.TB, dir string) {
			t.Helper()
			check(t, do(dir))
		}
	}

	return []typetest.Case{
		{Name: "drift of a content", Setup: withDir("d", 0o755), Properties: hello, Message: created, Drift: change(func(dir string) error { return os.WriteFile(dir+"/d/x", []byte("other"), 0o644) })},
		{Name: "drift of a mode", Setup: withDir("d", 0o755), Properties: hello, Message: created, Drift: change(func(dir string) error { return os.Chmod(dir+"/d/x", 0o600) })},
		{Name: "drift by removal", Setup: withDir("d", 0o755), Properties: hello, Message: created, Drift: change(func(dir string) error { return os.Remove(dir + "/d/x") })},
		{Name: "drift of the parent", Setup: withDir("d", 0o755), Properties: hello, Message: created, Drift: change(func(dir string) error { return os.Rename(dir+"/d", dir+"/e") })},
		{Name: "drift from a source", Setup: withFile("src/f", "one", 0o644), Properties: copied, Message: created, Drift: change(func(dir string) error { return os.WriteFile(dir+"/src/f", []byte("two"), 0o644) })},
		{Name: "drift of a directory", Properties: directory, Message: "Would have created directory", Drift: change(func(dir string) error { return os.Chmod(dir+"/x", 0o700) })},
		{Name: "drift of what is absent", Setup: withFile("x", "1", 0o644), Properties: absent("x", nil), Message: "Would have removed the file", Drift: change(func(dir string) error { return os.WriteFile(dir+"/x", nil, 0o644) })},
	}
}
