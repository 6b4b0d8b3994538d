//go:build system

package file_test

import (
	"encoding/binary"
	"maps"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

const capabilities = "security.capability"

// bindService returns the capability to bind to low ports, as the kernel stores it.
func bindService() []byte {
	value := binary.LittleEndian.AppendUint32(nil, 0x02000001)

	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(value, 1<<10), 0)
}

// TestSystemCapabilities has a program with capabilities get another content.
func TestSystemCapabilities(t *testing.T) {
	hosttest.NeedRoot(t)
	for message, more := range map[string]typetest.Properties{
		"Would have updated the file and preserved its capabilities": {"content": "new"},
		"Would have updated the file and removed its capabilities":   {"content": "new", "drop_capabilities": true},
		"": {"content": "old", "drop_capabilities": true},
	} {
		dir := t.TempDir()
		withFile("x", "old", 0o755)(t, dir)
		check(t, unix.Setxattr(dir+"/x", capabilities, bindService(), 0))
		p := typetest.Properties{"name": dir + "/x", "owner": "0", "group": "0", "mode": "0755"}
		for key, value := range more {
			p[key] = value
		}
		if got := planOf(t, "", specOf(t, p)).Message(); got != message {
			t.Errorf("the plan says %q, not %q", got, message)
		}
		check(t, applied(t, p))
		_, err := unix.Getxattr(dir+"/x", capabilities, nil)
		if removed := more["content"] == "new" && more["drop_capabilities"] != nil; removed != (err == unix.ENODATA) {
			t.Errorf("%v: %v", more, err)
		}
	}
}

// TestSystemCapabilitiesAndOwner changes the owner of a program with capabilities. Noop and
// report say whether the program keeps them.
func TestSystemCapabilitiesAndOwner(t *testing.T) {
	hosttest.NeedRoot(t)
	const preserved, removed = " and preserved its capabilities", " and removed its capabilities"
	for message, c := range map[string]struct {
		owner int
		more  typetest.Properties
		kept  bool
	}{
		"Would have updated attributes" + preserved: {0, typetest.Properties{"owner": "54321", "group": "54321"}, true},
		"Would have updated attributes" + removed:   {54321, typetest.Properties{"owner": "0", "group": "0"}, false},
		"Would have updated the file" + preserved:   {0, typetest.Properties{"owner": "54321", "content": "new"}, true},
		"Would have updated the file" + removed:     {54321, typetest.Properties{"owner": "0", "content": "new"}, false},
	} {
		path := t.TempDir() + "/x"
		check(t, os.WriteFile(path, []byte("old"), 0o755))
		check(t, os.Lchown(path, c.owner, c.owner))
		check(t, unix.Setxattr(path, capabilities, bindService(), 0))
		p := typetest.Properties{"name": path, "owner": "0", "group": "0", "mode": "0755"}
		maps.Copy(p, c.more)
		if got := planOf(t, "", specOf(t, p)).Message(); got != message {
			t.Errorf("the plan says %q, not %q", got, message)
		}
		check(t, applied(t, p))
		if _, err := unix.Getxattr(path, capabilities, nil); c.kept != (err == nil) {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// TestSystemCapabilitiesOfAnOrdinaryUser checks that a change fails before it begins if the process
// must not set capabilities.
func TestSystemCapabilitiesOfAnOrdinaryUser(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, more := range map[string]typetest.Properties{"content": {"content": "new"}, "group": {"group": "54321"}} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/x"
			check(t, os.WriteFile(path, []byte("old"), 0o755))
			check(t, unix.Setxattr(path, capabilities, bindService(), 0))
			withoutSetFileCapabilities(t)
			p := typetest.Properties{"name": path, "owner": "0", "group": "0", "mode": "0755"}
			maps.Copy(p, more)
			want := path + " has capabilities that this user cannot preserve: run muster as root, or remove them (setcap -r)"
			if err := applied(t, p); err == nil || err.Error() != want {
				t.Errorf("the error is %v", err)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "old" {
				t.Errorf("the content is %q: %v", content, err)
			}
		})
	}
}

// withoutSetFileCapabilities takes CAP_SETFCAP from the thread of the test until it ends.
func withoutSetFileCapabilities(t *testing.T) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before [2]unix.CapUserData
	runtime.LockOSThread()
	check(t, unix.Capget(&header, &before[0]))
	without := before
	without[0].Effective &^= 1 << unix.CAP_SETFCAP
	check(t, unix.Capset(&header, &without[0]))
	t.Cleanup(func() {
		check(t, unix.Capset(&header, &before[0]))
		runtime.UnlockOSThread()
	})
}
