//go:build system

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemRemoveAllStopsAtMounts mounts file systems, directories and a file in, on and
// beside a tree. RemoveAll refuses before it removes anything, and names the mount point.
func TestSystemRemoveAllStopsAtMounts(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, c := range map[string]struct {
		// from is bound, in the base directory; empty mounts a tmpfs.
		from, at string
		// removed and named are relative paths; named is empty where removal succeeds.
		removed, named string
	}{
		"file system below":          {at: "t/d/sub", removed: "t/d", named: "t/d/sub"},
		"file system deep below":     {at: "t/d/a/b", removed: "t/d", named: "t/d/a/b"},
		"file system on it":          {at: "t/d", removed: "t/d", named: "t/d"},
		"directory of the same disk": {from: "other", at: "t/d/sub", removed: "t/d", named: "t/d/sub"},
		"directory bound to itself":  {from: "t/d/sub", at: "t/d/sub", removed: "t/d", named: "t/d/sub"},
		"file":                       {from: "other/f", at: "t/d/a/f", removed: "t/d", named: "t/d/a/f"},
		"file on it":                 {from: "other/f", at: "t/d/z", removed: "t/d/z", named: "t/d/z"},
		"by another path":            {from: "t", at: "alias", removed: "alias/d"},
		"by a link":                  {at: "t/d/sub", removed: "link/d", named: "t/d/sub"},
		"beside it":                  {at: "t/dd", removed: "t/d"},
		"around it":                  {from: "t", at: "t", removed: "t/d"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			hosttest.MakeTree(t, base, "other/", "other/f", "alias/", "t/", "t/dd/", "t/d/", "t/d/sub/", "t/d/sub/inside", "t/d/a/", "t/d/a/b/", "t/d/a/f", "t/d/z", "link -> "+base+"/t")
			if c.from == "" {
				hosttest.Mount(t, "", filepath.Join(base, c.at))
			} else {
				hosttest.Mount(t, filepath.Join(base, c.from), filepath.Join(base, c.at))
			}
			before, path := hosttest.Snapshot(t, base), filepath.Join(base, c.removed)
			h := hosttest.New(t)
			expected := files.MayReplace(path)
			err := h.RemoveAll(t.Context(), path)
			if (expected == nil) != (c.named == "") || (err == nil) != (c.named == "") {
				t.Fatalf("expected: %v, removed: %v", expected, err)
			}
			if c.named == "" {
				if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v", path, err)
				}
				return
			}
			for _, err := range []error{expected, err} {
				if !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), filepath.Join(base, c.named)+" is a mount point") {
					t.Errorf("the error is %v", err)
				}
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, base)); len(diff) > 0 {
				t.Errorf("something was removed: %q", diff)
			}
		})
	}
}

// TestSystemRemoveAllByAnotherPath removes a directory with a mount point through a path that hides the
// mount. The kernel refuses to remove a mount point through any path.
func TestSystemRemoveAllByAnotherPath(t *testing.T) {
	hosttest.NeedRoot(t)
	base := t.TempDir()
	hosttest.MakeTree(t, base, "alias/", "t/", "t/d/", "t/d/a", "t/d/sub/")
	hosttest.Mount(t, base+"/t", base+"/alias")
	hosttest.Mount(t, "", base+"/t/d/sub")
	before := hosttest.Snapshot(t, base)
	err := hosttest.New(t).RemoveAll(t.Context(), base+"/alias/d")
	if !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), base+"/t/d/sub is a mount point") {
		t.Errorf("the error is %v", err)
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, base)); len(diff) > 0 {
		t.Errorf("something was removed: %q", diff)
	}
}

// TestSystemRemoveAllMeetsANewMount mounts a directory in a tree during its removal. The mounted
// files must stay, in any order of both.
func TestSystemRemoveAllMeetsANewMount(t *testing.T) {
	hosttest.NeedRoot(t)
	for range 20 {
		base := t.TempDir()
		hosttest.MakeTree(t, base, "other/", "other/precious", "t/", "t/d/")
		path := dig(t, base+"/t/d", 200)
		low := path
		for range 100 {
			low = filepath.Join(low, "d")
		}
		done := make(chan error, 1)
		go func() { done <- unix.Mount(base+"/other", low, "", unix.MS_BIND, "") }()
		err := hosttest.New(t).RemoveAll(t.Context(), base+"/t")
		if mounted := <-done == nil; mounted {
			if err == nil {
				t.Error("a tree with a mount point was removed")
			}
			if err := unix.Unmount(low, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(base + "/other/precious"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSystemWriteToAMountedFile replaces a file that is a mount point.
func TestSystemWriteToAMountedFile(t *testing.T) {
	hosttest.NeedRoot(t)
	base := t.TempDir()
	hosttest.MakeTree(t, base, "container-hosts", "hosts")
	hosttest.Mount(t, base+"/container-hosts", base+"/hosts")
	h := hosttest.New(t)
	expected := files.MayReplace(base + "/hosts")
	err := h.Write(t.Context(), base+"/hosts", strings.NewReader("new"), hosttest.Attrs(t, 0o644))
	for _, err := range []error{expected, err} {
		if !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), base+"/hosts is a mount point") || !strings.Contains(err.Error(), "container-hosts") || !strings.Contains(err.Error(), "umount "+base+"/hosts") {
			t.Errorf("the error is %v", err)
		}
	}
	if left, _ := os.ReadDir(base); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}
