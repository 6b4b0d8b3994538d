package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestRemoveAllOfAWideTree has directories, links and files at every level, some below the depth of open
// directories.
func TestRemoveAllOfAWideTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosttest.MakeTree(t, dir, "kept", "tree/")
	path := filepath.Join(dir, "tree")
	for level, at := 0, path; level < 100; level++ {
		hosttest.MakeTree(t, at, "file", "empty/", "full/", "full/x", "link -> "+dir+"/kept", "up -> ..", "dangling -> nowhere", "next/")
		at = filepath.Join(at, "next")
	}
	for i := range 3000 {
		hosttest.MakeTree(t, path, fmt.Sprintf("%d", i))
	}
	if err := hosttest.New(t).RemoveAll(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if got := hosttest.Snapshot(t, dir); len(got) != 2 || got["kept"].Size != 4 {
		t.Errorf("left: %v", got)
	}
}

// countdown is a context that ends after it was asked a number of times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left >= 0 {
		return nil
	}

	return context.DeadlineExceeded
}

// TestRemoveAllEnds has the time be up in the middle of a directory.
func TestRemoveAllEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tree")
	hosttest.MakeTree(t, filepath.Dir(path), "tree/")
	for i := range 1000 {
		hosttest.MakeTree(t, path, fmt.Sprint(i))
	}
	err := hosttest.New(t).RemoveAll(&countdown{t.Context(), 500}, path)
	left, _ := os.ReadDir(path)
	removed := 1000 - len(left)
	if !errors.Is(err, context.DeadlineExceeded) || removed < 100 || removed > 500 || !strings.Contains(err.Error(), fmt.Sprintf("%d of its files and directories are removed and stay removed", removed)) {
		t.Errorf("%d were removed, the error is %v", removed, err)
	}
}

// own gives a tree to hosttest.Ordinary.
func own(t *testing.T, dir string) {
	t.Helper()
	uid, gid := hosttest.Ordinary()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, gid))
	})
	if err := errors.Join(err, os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveAllGoesOn removes all it can after errors.
func TestRemoveAllGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tree")
	hosttest.MakeTree(t, filepath.Dir(path), "tree/")
	at := path
	for range 40 {
		hosttest.MakeTree(t, at, "a", "d/", "z")
		at = filepath.Join(at, "d")
	}
	hosttest.MakeTree(t, at, "stays", "full/", "full/x")
	if err := os.Chmod(at, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
	own(t, filepath.Dir(path))
	var err error
	hosttest.Powerless(t, func() { err = files.New(files.Options{}).RemoveAll(t.Context(), path) })
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "could not remove "+path) {
		t.Errorf("the error is %v", err)
	}
	left := hosttest.Snapshot(t, path)
	if len(left) != 41+2 {
		t.Errorf("left: %d, %v", len(left), left)
	}
}
