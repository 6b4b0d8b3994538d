//go:build system

package files_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

const (
	access     = "system.posix_acl_access"
	capability = "security.capability"
	selinux    = "security.selinux"
	oldLabel   = "system_u:object_r:old_t:s0\x00"
)

// allows returns an access control list that lets a user read, with a mask.
func allows(uid uint32, mask uint16) string {
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, ^uint32(0)}, {2, 4, uid}, {4, 4, ^uint32(0)}, {0x10, mask, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.perm)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}

	return string(out)
}

// bindService is cap_net_bind_service in the format of version 2.
func bindService() string {
	out := binary.LittleEndian.AppendUint32(nil, 0x02000001)

	return string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, 1<<10), 0))
}

// furnished makes a file with all attributes that Write keeps, and another attribute.
func furnished(t *testing.T, path string, uid int) {
	t.Helper()
	hosttest.MakeTree(t, filepath.Dir(path), filepath.Base(path))
	if err := os.Chown(path, uid, uid); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{access: allows(1234, 4), capability: bindService(), selinux: oldLabel, "user.origin": "here", "security.other": "x"} {
		if err := unix.Setxattr(path, name, []byte(value), 0); err != nil {
			t.Fatal(name, err)
		}
	}
}

func lacks(t *testing.T, path string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := unix.Lgetxattr(path, name, nil); err != unix.ENODATA {
			t.Errorf("%s has %s: %v", path, name, err)
		}
	}
}

// TestSystemWriteKeepsAttributes replaces files of root and of their new owner.
func TestSystemWriteKeepsAttributes(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, uid := range map[string]uint32{"root": 0, "its owner": hosttest.Stranger} {
		t.Run(name, func(t *testing.T) {
			h, path := hosttest.New(t), t.TempDir()+"/f"
			furnished(t, path, int(uid))
			a := files.Attrs{UID: hosttest.Stranger, GID: hosttest.Stranger, Mode: 0o640}
			if !h.Carried(path, a, false).Capabilities {
				t.Error("the capabilities are not announced")
			}
			if err := h.Write(t.Context(), path, strings.NewReader("new"), a); err != nil {
				t.Fatal(err)
			}
			hasAttribute(t, path, access, allows(1234, 4))
			hasAttribute(t, path, capability, bindService())
			hasAttribute(t, path, selinux, oldLabel)
			hasAttribute(t, path, "user.origin", "here")
			lacks(t, path, "security.other")
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the mode is %v, %v", info.Mode(), err)
			}
			// A mode without group permissions disables the list.
			a.Mode = 0o600
			if err := h.WriteWith(t.Context(), path, strings.NewReader("newer"), a, files.WriteOptions{DropCapabilities: true}); err != nil {
				t.Fatal(err)
			}
			hasAttribute(t, path, access, allows(1234, 0))
			lacks(t, path, capability)
		})
	}
}

// TestSystemWriteTakesNothingFromStrangers replaces a file of another user with a file of root,
// and a file of root that the user may have moved into their directory.
func TestSystemWriteTakesNothingFromStrangers(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, c := range map[string]struct {
		uid  int
		a    files.Attrs
		home bool
	}{
		"their file":           {hosttest.Stranger, files.Attrs{Mode: 0o600}, false},
		"a file that they own": {hosttest.Stranger + 1, files.Attrs{UID: hosttest.Stranger, Mode: 0o600}, false},
		"moved to their home":  {0, files.Attrs{Mode: 0o600}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.home {
				dir = hosttest.Foreign(t)
			}
			path := dir + "/f"
			furnished(t, path, c.uid)
			disk := files.New(files.Options{Label: func(_ context.Context, of string) (string, error) { return "label_of:" + filepath.Base(of), nil }})
			carried := disk.Carried(path, c.a, false)
			if want := []string{"access control list", "capabilities", "user attributes"}; carried.Capabilities || !slices.Equal(carried.Lost, want) {
				t.Errorf("it announces %+v", carried)
			}
			if err := disk.Write(t.Context(), path, strings.NewReader("secret"), c.a); err != nil {
				t.Fatal(err)
			}
			lacks(t, path, access, capability, "user.origin")
			hasAttribute(t, path, selinux, "label_of:f\x00")
		})
	}
}

// TestSystemNewFileHasTheDefaultLabel checks that the label belongs to the final path.
func TestSystemNewFileHasTheDefaultLabel(t *testing.T) {
	hosttest.NeedRoot(t)
	path := t.TempDir() + "/f"
	disk := files.New(files.Options{Label: func(_ context.Context, of string) (string, error) { return "label_of:" + of, nil }})
	if err := disk.Write(t.Context(), path, strings.NewReader("x"), files.Attrs{Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	hasAttribute(t, path, selinux, "label_of:"+path+"\x00")
}
