package files_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
)

func TestIsUnitFile(t *testing.T) {
	for path, want := range map[string]bool{
		"/etc/systemd/system/a.service":                   true,
		"/run/systemd/system/a.timer":                     true,
		"/usr/lib/systemd/system/a.mount":                 true,
		"/usr/local/lib/systemd/system/a.socket":          true,
		"/lib/systemd/system/a@.path":                     true,
		"/etc/systemd/system/../system/a.slice":           true,
		"/etc/systemd/system/a.service.d/10.conf":         true,
		"/etc/systemd/system/service.d/10.conf":           true,
		"/etc/systemd/system/a.timer.d":                   true,
		"/etc/systemd/system":                             true,
		"/etc/systemd/system.control/a.service.d/50.conf": true,
		"/run/systemd/system.control/a.service.d/50.conf": true,
		"/etc/systemd/system.attached/a.service":          true,
		"/run/systemd/system.attached/a.service":          true,
		"/etc/systemd/system/a.service.d/10.conf.bak":     false,
		"/etc/systemd/system/a.service.bak":               false,
		"/etc/systemd/system/deep/a.service":              false,
		"/etc/systemd/system/multi-user.target.wants/a.d": false,
		"/etc/systemd/user/a.service":                     false,
		"/etc/systemd/system.conf":                        false,
		"/etc/a.service":                                  false,
	} {
		if got := files.IsUnitFile(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func TestUnitFiles(t *testing.T) {
	var u files.UnitFiles
	u.NoteChange("/etc/motd")
	if u.ArePending() {
		t.Error("another file counts as a unit file")
	}
	u.NoteChange("/etc/systemd/system/a.service")
	before := u.Changes()
	u.NoteChange("/etc/systemd/system/a.timer") // while systemd reads
	if u.NoteRead(before); !u.ArePending() {
		t.Error("a change during a reload counts as read")
	}
	if u.NoteRead(u.Changes()); u.ArePending() {
		t.Error("all changes were read")
	}
}
