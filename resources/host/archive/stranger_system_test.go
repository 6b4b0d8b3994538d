//go:build system

package archive_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemDirectoryMovedIntoATarget has a stranger move a directory of root into
// the target, whose attributes an archive has too.
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
		// The parent comes before its own entry, and belongs to root until then.
		if err := extractInto(t, home, pack(t, regular("new/file", "x", 0o644), directory("new", 0o755)), archive.Tar, true); err != nil {
			t.Errorf("%s: a new directory: %v", name, err)
		}
	}
}
