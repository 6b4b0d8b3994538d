//go:build system

package archive_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

// diary makes a directory of another user with mode 0700.
func diary(t *testing.T, path string) {
	t.Helper()
	hosttest.MakeTree(t, filepath.Dir(path), filepath.Base(path)+"/", filepath.Base(path)+"/diary")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	hosttest.Give(t, path, path+"/diary")
}

// stillTheirs fails if owner or mode of the directory changed.
func stillTheirs(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid != hosttest.Stranger || info.Mode().Perm() != 0o700 {
		t.Fatalf("%s belongs to %d and has mode %v", path, uid, info.Mode())
	}
}

// TestSystemTargetOfAStrangerAppears lets another user make the target during the inspection.
func TestSystemTargetOfAStrangerAppears(t *testing.T) {
	hosttest.NeedRoot(t)
	target := hosttest.Foreign(t) + "/ex"
	s := newStand(t, t.TempDir()+"/archive", pack(t, regular("a", "x", 0o644)), archive.Tar, target)
	if _, err := s.Extract(&during{t.Context(), func() { diary(t, target) }}, s.disk, target, archive.Limits{}, archive.Options{}); err != nil {
		t.Error(err)
	}
	stillTheirs(t, target)
}

// TestSystemTargetExchangedForALink lets another user swap the target and a link all the time.
func TestSystemTargetExchangedForALink(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	target := home + "/ex"
	diary(t, target)
	hosttest.MakeTree(t, home, "elsewhere/", "link -> "+home+"/elsewhere")
	hosttest.Give(t, home+"/elsewhere", home+"/link")
	s := newStand(t, t.TempDir()+"/archive", pack(t, regular("a", "x", 0o644)), archive.Tar, target)
	stop := hosttest.Swap(t, target, home+"/link")
	for range 2000 {
		_, _ = s.Extract(t.Context(), s.disk, target, archive.Limits{}, archive.Options{})
	}
	stop()
	if info, err := os.Lstat(target); err == nil && info.Mode()&os.ModeSymlink != 0 {
		target = home + "/link"
	}
	stillTheirs(t, target)
}

// TestSystemPreserveLeavesDirectoriesOfStrangers unpacks an archive with another owner and
// mode for an existing directory of another user.
func TestSystemPreserveLeavesDirectoriesOfStrangers(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	diary(t, home+"/private")
	for _, entries := range [][]tar.Header{{directory("private", 0o755)}, {directory("private", 0o777), regular("private/a", "x", 0o644)}} {
		if err := extractInto(t, home, pack(t, entries...), archive.Tar, true); err != nil {
			t.Error(err)
		}
		stillTheirs(t, home+"/private")
	}
}
