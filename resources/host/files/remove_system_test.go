//go:build system

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// dig makes a directory in each other, each with a file beside it, and returns the
// path of the first.
func dig(t *testing.T, dir string, levels int) string {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	for range levels {
		var next, file int
		if err == nil {
			err = unix.Mkdirat(at, "d", 0o755)
		}
		if err == nil {
			next, err = unix.Openat(at, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		}
		if err == nil {
			file, err = unix.Openat(next, "f", unix.O_CREAT|unix.O_WRONLY, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(unix.Close(at), unix.Close(file))
		at = next
	}
	if err := errors.Join(err, unix.Close(at)); err != nil {
		t.Fatal(err)
	}

	return filepath.Join(dir, "d")
}

// TestSystemRemoveAllOfADeepTree has more levels than a process may open files.
func TestSystemRemoveAllOfADeepTree(t *testing.T) {
	hosttest.NeedRoot(t)
	path := dig(t, hosttest.MountTmpfs(t, "", 0), 30000)
	if err := hosttest.New(t).RemoveAll(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestSystemRemoveAllIsNotLedOut: the owner of a deep tree exchanges directories on the path with a link to
// foreign files, and with a foreign directory.
func TestSystemRemoveAllIsNotLedOut(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "etc/passwd", "etc/d/", "etc/d/f")
	before := hosttest.Snapshot(t, base+"/etc")
	for range 20 {
		path := dig(t, home, 60)
		middle := path
		for range 45 {
			middle = filepath.Join(middle, "d")
		}
		hosttest.MakeTree(t, home, "evil -> "+base+"/etc")
		stop := hosttest.Swap(t, middle, home+"/evil")
		err := hosttest.New(t).RemoveAll(t.Context(), path)
		stop()
		if _, left := os.Lstat(path); err == nil && left == nil {
			t.Error("it is left without an error")
		}
		if err := errors.Join(os.RemoveAll(path), os.RemoveAll(home+"/evil")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, base+"/etc")); len(diff) > 0 {
		t.Errorf("something outside was changed: %q", diff)
	}
}

// TestSystemRemoveAllMovedAway has the owner move the directory at work below one of
// root, where the way up leads: nothing there is removed.
func TestSystemRemoveAllMovedAway(t *testing.T) {
	hosttest.NeedRoot(t)
	moved := 0
	for range 20 {
		base := t.TempDir()
		hosttest.MakeTree(t, base, "other/", "other/a", "other/z", "tree/")
		path := dig(t, filepath.Join(base, "tree"), 200)
		low := path
		for range 100 {
			low = filepath.Join(low, "d")
		}
		done := make(chan error, 1)
		go func() { done <- os.Rename(low, base+"/other/d") }()
		err := hosttest.New(t).RemoveAll(t.Context(), path)
		if <-done == nil && err != nil {
			moved++
		}
		for _, name := range []string{"a", "z"} {
			if _, err := os.Lstat(base + "/other/" + name); err != nil {
				t.Fatalf("other/%s: %v", name, err)
			}
		}
	}
	t.Logf("%d of 20 were moved under way", moved)
}
