//go:build system

package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemDirectoryMovedIntoATarget: another user moves a directory of root into the target under the name
// of an archive entry with attributes.
func TestSystemDirectoryMovedIntoATarget(t *testing.T) {
	hosttest.NeedRoot(t)
	entry := directory("conf", 0o755)
	entry.Uid, entry.Gid = hosttest.Stranger, hosttest.Stranger
	below := directory("conf/below", 0o755)
	below.Uid, below.Gid = hosttest.Stranger, hosttest.Stranger
	for name, content := range map[string][]byte{"itself": pack(t, entry), "below": pack(t, below)} {
		home := hosttest.Foreign(t)
		if err := errors.Join(os.MkdirAll(home+"/conf/below", 0o700), os.Chmod(home+"/conf", 0o700)); err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(t, filepath.Join(home, "conf"))
		if err := extractInto(t, home, content, archive.Tar, true); !errors.Is(err, paths.ErrUnsafe) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, home+"/conf")); len(diff) > 0 {
			t.Errorf("%s: something was changed: %q", name, diff)
		}
		hosttest.Give(t, home+"/conf", home+"/conf/below")
		if err := extractInto(t, home, content, archive.Tar, true); err != nil {
			t.Errorf("%s: their own: %v", name, err)
		}
		// The parent precedes its entry, and belongs to root until then.
		if err := extractInto(t, home, pack(t, regular("new/file", "x", 0o644), directory("new", 0o755)), archive.Tar, true); err != nil {
			t.Errorf("%s: a new directory: %v", name, err)
		}
	}
}

// TestSystemExtractInheritsNoLists has a stranger set a default access control list
// on the target.
func TestSystemExtractInheritsNoLists(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	list := []byte("\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x07\x00\x31\xd4\x00\x00\x04\x00\x05\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	if err := unix.Setxattr(home, "system.posix_acl_default", list, 0); err != nil {
		t.Fatal(err)
	}
	if err := extractInto(t, home, pack(t, regular("implied/file", "x", 0o660), directory("made", 0o770)), archive.Tar, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"implied", "implied/file", "made"} {
		for _, kind := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
			if _, err := unix.Lgetxattr(filepath.Join(home, name), kind, nil); err != unix.ENODATA && err != unix.ENOTSUP {
				t.Errorf("%s has %s: %v", name, kind, err)
			}
		}
	}
}
