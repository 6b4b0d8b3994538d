package systemd

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestEnablingLinks(t *testing.T) {
	root := t.TempDir()
	for path, target := range map[string]string{
		"etc/systemd/system/multi-user.target.wants/web.service": "/usr/lib/systemd/system/web.service",
		"etc/systemd/system/other.service.requires/db.service":   "/usr/lib/systemd/system/db.service",
		"run/systemd/system/x.target.upholds/up.service":         "/usr/lib/systemd/system/up.service",
		"etc/systemd/system/web.service.d/link.conf":             "/opt/drop.conf",
		"etc/systemd/system/syslog.service":                      "/usr/lib/systemd/system/rsyslog.service",
		"etc/systemd/system/linked.service":                      "/opt/linked.service",
		"etc/systemd/system/old.service":                         "/dev/null",
		"run/systemd/system/now.service":                         "/dev/null",
		"usr/lib/systemd/system/hwclock.service":                 "/dev/null",
		"usr/lib/systemd/system/default.target":                  "graphical.target",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	links := enablingLinks(root)
	if got := slices.Sorted(maps.Keys(links.enabling)); !slices.Equal(got, []string{"db.service", "rsyslog.service", "up.service", "web.service"}) {
		t.Errorf("enabling: %q", got)
	}
	if got := slices.Sorted(maps.Keys(links.masked)); !slices.Equal(got, []string{"hwclock.service", "now.service", "old.service"}) {
		t.Errorf("masked: %q", got)
	}

	before := unitDirs(root)
	if !maps.Equal(before, unitDirs(root)) || len(before) == 0 {
		t.Errorf("two looks differ: %v", before)
	}
	if err := os.Mkdir(filepath.Join(root, "etc/systemd/system/db.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if maps.Equal(before, unitDirs(root)) {
		t.Error("the first drop-in of a unit is not noticed")
	}
	if links := enablingLinks(t.TempDir()); len(links.enabling)+len(links.masked)+len(unitDirs(t.TempDir())) != 0 {
		t.Errorf("links where there are none: %+v", links)
	}
}
