//go:build system

package file_test

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemCapabilities has a program with capabilities get another content.
func TestSystemCapabilities(t *testing.T) {
	hosttest.NeedRoot(t)
	const name = "security.capability"
	bindService := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	bindService = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(bindService, 1<<10), 0)
	for message, more := range map[string]typetest.Properties{
		"Would have updated the file and preserved its capabilities": {"content": "new"},
		"Would have updated the file and removed its capabilities":   {"content": "new", "drop_capabilities": true},
		"": {"content": "old", "drop_capabilities": true},
	} {
		dir := t.TempDir()
		withFile("x", "old", 0o755)(t, dir)
		check(t, unix.Setxattr(dir+"/x", name, bindService, 0))
		p := typetest.Properties{"name": dir + "/x", "owner": "0", "group": "0", "mode": "0755"}
		for key, value := range more {
			p[key] = value
		}
		if got := planOf(t, "", specOf(t, p)).Message(); got != message {
			t.Errorf("the plan says %q, not %q", got, message)
		}
		check(t, applied(t, p))
		_, err := unix.Getxattr(dir+"/x", name, nil)
		if removed := more["content"] == "new" && more["drop_capabilities"] != nil; removed != (err == unix.ENODATA) {
			t.Errorf("%v: %v", more, err)
		}
	}
}
