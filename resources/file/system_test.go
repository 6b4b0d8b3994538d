//go:build system

package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

// TestOwners covers the rows about owner and group, which only root can change:
// by name and by number, on files and directories.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("tests with the tag system run as root")
	}
	h := hosttest.New(t)
	uid, err := h.UID(t.Context(), "daemon")
	check(t, err)
	gid, err := h.GID(t.Context(), "daemon")
	check(t, err)
	belongs := func(name string, uid, gid uint32) setup {
		return func(t *testing.T, dir string) {
			t.Helper()
			var st unix.Stat_t
			check(t, unix.Lstat(filepath.Join(dir, name), &st))
			if st.Uid != uid || st.Gid != gid {
				t.Errorf("%s belongs to %d:%d, not %d:%d", name, st.Uid, st.Gid, uid, gid)
			}
		}
	}
	daemon := typetest.Properties{"owner": "daemon", "group": "daemon"}
	named := func(more typetest.Properties) func(string) typetest.Properties {
		p := typetest.Properties{}
		for _, source := range []typetest.Properties{daemon, more} {
			for k, v := range source {
				p[k] = v
			}
		}
		return owned(t, "x", p)
	}
	given := func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.Chown(filepath.Join(dir, "x"), int(uid), int(gid)))
	}
	const unknown = 4242424
	typetest.Run(t, typetest.Config{Type: fileType(), Cases: []typetest.Case{
		{Name: "created", Properties: named(typetest.Properties{"content": "a"}), Message: "Would have created the file", Check: belongs("x", uid, gid)},
		{Name: "content, other owner", Setup: withFile("x", "a", 0o644), Properties: named(typetest.Properties{"content": "a"}), Message: "Would have updated the file", Check: all(belongs("x", uid, gid), holds("x", "a", 0o644))},
		{Name: "attributes, other owner", Setup: withFile("x", "a", 0o644), Properties: named(nil), Message: "Would have updated attributes", Check: all(belongs("x", uid, gid), holds("x", "a", 0o644))},
		{Name: "attributes, the same by name", Setup: all(withFile("x", "a", 0o644), given), Properties: named(nil)},
		{Name: "attributes, the same by number", Setup: all(withFile("x", "a", 0o644), given), Properties: named(typetest.Properties{"owner": uid, "group": gid})},
		{Name: "attributes, a number without a name", Setup: withFile("x", "a", 0o644), Properties: named(typetest.Properties{"owner": unknown, "group": unknown}), Message: "Would have updated attributes", Check: belongs("x", unknown, unknown)},
		{Name: "attributes, only the group", Setup: withFile("x", "a", 0o644), Properties: owned(t, "x", typetest.Properties{"group": "daemon"}), Message: "Would have updated attributes", Check: belongs("x", 0, gid)},
		{Name: "setuid goes with a new owner", Setup: withFile("x", "a", 0o4755), Properties: named(typetest.Properties{"mode": "0755"}), Message: "Would have updated attributes", Check: all(belongs("x", uid, gid), holds("x", "a", 0o755))},
		{Name: "directory, created", Properties: named(typetest.Properties{"ensure": "directory", "mode": "0750"}), Message: "Would have created directory", Check: all(belongs("x", uid, gid), isDir("x", 0o750))},
		{Name: "directory, other owner", Setup: withDir("x", 0o2755), Properties: named(typetest.Properties{"ensure": "directory", "mode": "0755"}), Message: "Would have updated attributes", Check: all(belongs("x", uid, gid), isDir("x", 0o2755))},
		{Name: "directory, link to one of another", Setup: all(withDir("d", 0o755), withLink("x", "d")), Properties: named(typetest.Properties{"ensure": "directory", "mode": "0755"}), Error: "owner is root, not daemon, group is root, not daemon", Check: belongs("d", 0, 0)},
	}})
}

// TestDevice covers the row of a device, which only root can make.
func TestDevice(t *testing.T) {
	dir := t.TempDir()
	check(t, unix.Mknod(filepath.Join(dir, "x"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	spec := specOf(t, owned(t, "x", typetest.Properties{"content": "a"})(dir))
	state := stateOf(t, testEnv(t, dir), spec)
	if _, err := fileType().Plan(spec, state, false); state.Entry.Kind != files.Other || err == nil || !strings.Contains(err.Error(), "device") {
		t.Errorf("%+v, %v", state, err)
	}
}
