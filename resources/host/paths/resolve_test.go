package paths_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// leads checks whether a path is opened, and that it is the directory at real.
func leads(t *testing.T, path, real string) {
	t.Helper()
	dir, err := paths.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	root, err := dir.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got, err := root.Stat(".")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.Stat(real); err != nil || !os.SameFile(got, want) || dir.Path() != path {
		t.Errorf("%s is not %s, but %s: %v", path, real, dir.Path(), err)
	}
}

func TestOpenDirFollowsOwnLinks(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "a/", "a/b/", "absolute -> DIR/a", "relative -> a/b", "a/b/up -> ../../a", "twice -> relative/up/b")
	for path, real := range map[string]string{"a": "a", "absolute/b": "a/b", "relative": "a/b", "a/b/up": "a", "twice": "a/b", "a/./b//": "a/b"} {
		leads(t, filepath.Join(base, path), filepath.Join(base, real))
	}
}

func TestOpenDirFails(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "file", "loop -> loop", "nowhere -> none", "tofile -> file")
	for path, want := range map[string]error{
		"none": syscall.ENOENT, "none/x": syscall.ENOENT, "file": syscall.ENOTDIR, "file/x": syscall.ENOTDIR,
		"loop": syscall.ELOOP, "nowhere": syscall.ENOENT, "tofile": syscall.ENOTDIR, strings.Repeat("x", 300): syscall.ENAMETOOLONG,
	} {
		if dir, err := paths.OpenDir(filepath.Join(base, path)); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", path, dir, err)
		}
	}
}

// TestOpenDirOfEverybody checks directories that everybody may write to: from
// one without the sticky bit only such ones are reached.
func TestOpenDirOfEverybody(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "safe/", "open/", "open/own/", "open/open/", "open/link -> ../safe", "open/inner -> open", "sticky/", "sticky/own/", "sticky/link -> ../safe")
	for name, mode := range map[string]os.FileMode{"open": 0o777, "open/open": 0o777, "sticky": 0o777 | os.ModeSticky} {
		if err := os.Chmod(filepath.Join(base, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, real := range map[string]string{"open": "open", "open/open": "open/open", "open/inner": "open/open", "sticky/own": "sticky/own", "sticky/link": "safe"} {
		leads(t, filepath.Join(base, path), filepath.Join(base, real))
	}
	for path, words := range map[string]string{
		"open/own":  base + "/open/own belongs to ",
		"open/link": "everybody may write to " + base + "/open",
	} {
		_, err := paths.OpenDir(filepath.Join(base, path))
		if !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestStatOfUncleanPaths checks that a look means the cleaned path, also in a
// directory that was reached a moment ago.
func TestStatOfUncleanPaths(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "a/", "a/f", "link -> a")
	var r paths.Resolver
	for path, clean := range map[string]string{"link/f": "a/f", "link//f": "a/f", "link/": "link", "link/.": "link", "link/..": "", "link/./f": "a/f"} {
		var st, reached unix.Stat_t
		if _, err := r.Stat(base+"/link/f", &reached, false); err != nil {
			t.Fatal(err)
		}
		_, err := r.Stat(base+"/"+path, &st, false)
		want, wantErr := os.Lstat(filepath.Join(base, clean))
		if err != nil || wantErr != nil || st.Ino != want.Sys().(*syscall.Stat_t).Ino {
			t.Errorf("%s is not %s: %v, %v", path, clean, err, wantErr)
		}
	}
}

// TestMayWrite checks directories, also one that was just opened.
func TestMayWrite(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "a/", "a/b/", "a/f", "file")
	var r paths.Resolver
	for range 2 {
		for path, want := range map[string]error{"a": nil, "a/b": nil, "a/b/..": nil, "none": syscall.ENOENT, "a/f": syscall.ENOTDIR} {
			if err := r.MayWrite(base + "/" + path); !errors.Is(err, want) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if err := os.Rename(base+"/a", base+"/moved"); err != nil {
		t.Fatal(err)
	}
	if err := r.MayWrite(base + "/a/b"); !paths.IsAbsent(err) {
		t.Errorf("in what was moved away: %v", err)
	}
}

// TestSyncOfEveryDescriptor syncs directories that are open for reading, and those
// that are only open to be looked at.
func TestSyncOfEveryDescriptor(t *testing.T) {
	base := t.TempDir()
	hosttest.MakeTree(t, base, "a/")
	var r paths.Resolver
	for range 2 { // the second path is an opened directory
		for what, open := range map[string]func(string) (*paths.Place, error){"Parent": r.Parent, "ReadableParent": r.ReadableParent} {
			at, err := open(base + "/a/x")
			if err != nil {
				t.Fatal(err)
			}
			readErr := unix.Fsync(at.Dir.Fd())
			if err := errors.Join(at.Dir.Sync(), at.Dir.Close()); err != nil || (readErr == nil) != (what == "ReadableParent") {
				t.Errorf("%s: %v, for reading: %v", what, err, readErr)
			}
		}
	}
}
