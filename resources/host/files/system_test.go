//go:build system

package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestSystemOwnersAreChanged(t *testing.T) {
	hosttest.NeedRoot(t)
	h, dir := hosttest.New(t).Disk, t.TempDir()
	path := filepath.Join(dir, "file")
	attrs := files.Attrs{UID: 12345, GID: 54321, Mode: 0o640}
	if err := h.Write(t.Context(), path, strings.NewReader("x"), attrs); err != nil {
		t.Fatal(err)
	}
	check := func(path string, uid, gid, mode uint32) {
		t.Helper()
		if entry, err := h.Look(path); err != nil || entry.UID != uid || entry.GID != gid || entry.Mode != mode {
			t.Errorf("%s is %+v: %v", path, entry, err)
		}
	}
	check(path, 12345, 54321, 0o640)
	if err := os.Chmod(path, 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := h.SetAttrs(path, files.Attrs{UID: 1, GID: 54321, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	check(path, 1, 54321, 0o755)
	made := filepath.Join(dir, "a", "b")
	for _, attrs := range []files.Attrs{attrs, {UID: 7, GID: 8, Mode: 0o700}} {
		if err := h.MakeDirectory(made, attrs); err != nil {
			t.Fatal(err)
		}
		check(made, attrs.UID, attrs.GID, uint32(attrs.Mode))
	}
	check(filepath.Dir(made), 0, 0, 0o755)
	if err := os.Chmod(made, 0o700|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if err := h.SetAttrs(made, attrs); err != nil {
		t.Fatal(err)
	}
	check(made, 12345, 54321, 0o2640)
}

func TestSystemFileSystemsThatTakeNothing(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, c := range map[string]struct {
		flags uintptr
		is    error
	}{"full": {0, syscall.ENOSPC}, "read-only": {syscall.MS_RDONLY, syscall.EROFS}} {
		t.Run(name, func(t *testing.T) {
			h, dir := hosttest.New(t).Disk, hosttest.MountTmpfs(t, "size=1m", c.flags)
			path := filepath.Join(dir, "file")
			before := hosttest.Snapshot(t, dir)
			delete(before, ".")
			if err := h.Write(t.Context(), path, bytes.NewReader(make([]byte, 2<<20)), hosttest.Attrs(t, 0o600)); !errors.Is(err, c.is) {
				t.Errorf("Write: %v", err)
			}
			after := hosttest.Snapshot(t, dir)
			delete(after, ".")
			if diff := hosttest.SnapshotDiff(before, after); len(diff) > 0 {
				t.Errorf("something was changed: %v", diff)
			}
			if c.flags == 0 {
				return
			}
			for what, err := range map[string]error{
				"SetAttrs":      h.SetAttrs(path, hosttest.Attrs(t, 0o600)),
				"MakeDirectory": h.MakeDirectory(filepath.Join(dir, "a", "b"), hosttest.Attrs(t, 0o755)),
				"Remove":        h.Remove(path),
				"RemoveAll":     h.RemoveAll(t.Context(), path),
			} {
				if !errors.Is(err, c.is) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestSystemLitterIsFoundWithItsNewOwner has what a run left that was killed
// between giving a file away and renaming it.
func TestSystemLitterIsFoundWithItsNewOwner(t *testing.T) {
	hosttest.NeedRoot(t)
	stateDir, dir := t.TempDir(), t.TempDir()
	kill(t, stateDir, dir)
	for _, path := range temporaries(t, dir) {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	h := files.New(files.Options{StateDir: stateDir})
	begin(t, h, files.RunOptions{})
	end(t, h)
	if found := temporaries(t, dir); len(found) > 0 {
		t.Errorf("the next run left %q", found)
	}
}

// TestSystemLitterThatCannotBeRemovedIsKeptInMind has the directory read-only
// for one run and writable for the next.
func TestSystemLitterThatCannotBeRemovedIsKeptInMind(t *testing.T) {
	hosttest.NeedRoot(t)
	stateDir, dir := t.TempDir(), hosttest.MountTmpfs(t, "size=64m", 0)
	kill(t, stateDir, dir)
	h := files.New(files.Options{StateDir: stateDir, Log: hosttest.Log(t)})
	for _, c := range []struct {
		flags uintptr
		left  int
	}{{syscall.MS_RDONLY, 1}, {0, 0}} {
		if err := syscall.Mount("muster", dir, "tmpfs", syscall.MS_REMOUNT|c.flags, "size=64m"); err != nil {
			t.Fatal(err)
		}
		begin(t, h, files.RunOptions{})
		end(t, h)
		if found := temporaries(t, dir); len(found) != c.left {
			t.Errorf("flags %d: there is %q", c.flags, found)
		}
	}
}

// TestSystemParentsThatAreMade has a stranger exchange a parent that is just
// made with a directory of root, which must not be given to the stranger.
func TestSystemParentsThatAreMade(t *testing.T) {
	hosttest.NeedRoot(t)
	home, h := hosttest.Foreign(t), hosttest.New(t).Disk
	hosttest.MakeTree(t, home, "secret/", "secret/file")
	secret, err := os.OpenRoot(home + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	if err := secret.Chmod(".", 0o700); err != nil {
		t.Fatal(err)
	}
	stop := hosttest.Swap(t, home+"/a", home+"/secret")
	var made int
	for tries := 0; tries < 400 || tries < 20_000 && made == 0; tries++ {
		if h.MakeDirectory(home+"/a/b", hosttest.Attrs(t, 0o755)) == nil {
			made++
		}
		if info, err := secret.Stat("."); err != nil || info.Mode().Perm() != 0o700 {
			t.Fatalf("the directory of root became %v after %d: %v", info.Mode(), made, err)
		}
		for _, name := range []string{"a/b", "a", "secret/b", "secret"} {
			_ = syscall.Rmdir(filepath.Join(home, name)) // but for the one with the file
		}
		if _, err := os.Lstat(home + "/secret"); err != nil {
			_ = os.Rename(home+"/a", home+"/secret")
		}
	}
	if swaps := stop(); swaps == 0 || made == 0 {
		t.Errorf("no race: %d swaps, %d made", swaps, made)
	}
}
