//go:build system

package file_test

import (
	"encoding/binary"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// acl returns an access control list that gives everything to Stranger.
func acl() []byte {
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 7, ^uint32(0)}, {2, 7, hosttest.Stranger}, {4, 5, ^uint32(0)}, {0x10, 7, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.perm)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}

	return out
}

// withoutACL checks that a path has neither kind of list.
func withoutACL(t *testing.T, path string) {
	t.Helper()
	for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
		if _, err := unix.Lgetxattr(path, name, nil); err != unix.ENODATA && err != unix.ENOTSUP {
			t.Errorf("%s has %s: %v", path, name, err)
		}
	}
}

// TestSystemInheritedLists sets a default access control list, as another user, on the directory
// where root makes files and directories.
func TestSystemInheritedLists(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	check(t, unix.Setxattr(home, "system.posix_acl_default", acl(), 0))
	of := typetest.Properties{"owner": "0", "group": "0"}
	for _, p := range []typetest.Properties{
		{"name": home + "/file", "content": "secret", "mode": "0660"},
		{"name": home + "/dir", "ensure": "directory", "mode": "0770"},
		{"name": home + "/a/b", "ensure": "directory", "mode": "0770", "owner": "54321"},
	} {
		for k, v := range of {
			if p[k] == nil {
				p[k] = v
			}
		}
		check(t, applied(t, p))
	}
	for _, name := range []string{"/file", "/dir", "/a", "/a/b"} {
		withoutACL(t, home+name)
	}
}

// TestSystemListOfAnExistingFile has a list on a file of root, which counts as
// another mode.
func TestSystemListOfAnExistingFile(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, p := range map[string]typetest.Properties{"content": {"content": "x"}, "attributes": {}, "directory": {"ensure": "directory"}} {
		home := hosttest.Foreign(t)
		path := home + "/it"
		if name == "directory" {
			check(t, os.Mkdir(path, 0o700))
		} else {
			check(t, os.WriteFile(path, []byte("x"), 0o600))
		}
		check(t, unix.Setxattr(path, "system.posix_acl_access", acl(), 0))
		p["name"], p["owner"], p["group"], p["mode"] = path, "0", "0", "0770"
		check(t, applied(t, p))
		withoutACL(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o770 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestSystemListOfAFormerOwner has root take what belongs to a stranger, in a directory
// of root: the lists that they made would give it back to them.
func TestSystemListOfAFormerOwner(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, p := range map[string]typetest.Properties{"attributes": {}, "directory": {"ensure": "directory"}} {
		path := t.TempDir() + "/it"
		if name == "directory" {
			check(t, os.Mkdir(path, 0o700))
			check(t, unix.Setxattr(path, "system.posix_acl_default", acl(), 0))
		} else {
			check(t, os.WriteFile(path, []byte("x"), 0o600))
		}
		hosttest.Give(t, path)
		check(t, unix.Setxattr(path, "system.posix_acl_access", acl(), 0))
		p["name"], p["owner"], p["group"], p["mode"] = path, "0", "0", "0770"
		check(t, applied(t, p))
		withoutACL(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o770 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		// What root has given later stays.
		check(t, unix.Setxattr(path, "system.posix_acl_access", acl(), 0))
		p["group"] = "54321"
		check(t, applied(t, p))
		if _, err := unix.Lgetxattr(path, "system.posix_acl_access", nil); err != nil {
			t.Errorf("%s lost the list that root has given it: %v", name, err)
		}
	}
}
