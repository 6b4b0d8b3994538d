//go:build system

package packaging_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// mounted returns a machine with a disk of the given size.
func mounted(t *testing.T, size string) disk {
	t.Helper()
	d := newDisk(t)
	root := filepath.Join(hosttest.MountTmpfs(t, "size="+size, 0), "root")
	if err := os.CopyFS(root, os.DirFS(d.root)); err != nil {
		t.Fatal(err)
	}
	d.root = root
	// A comment makes the program as large as one of a few megabytes.
	d.write("usr/bin/muster", program("1", "0", "0")+"#"+strings.Repeat("x", 4<<20)+"\n")

	return d
}

// TestSystemUpgradeNeedsRoom checks the needed space: for the saved program, the unpacked one, the state, and
// a reserve.
func TestSystemUpgradeNeedsRoom(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, c := range map[string]struct {
		size        string
		state       int
		bundle, fit bool
	}{
		"enough":          {"36m", 1, false, true},
		"too little":      {"26m", 1, false, false},
		"a large state":   {"36m", 8 << 20, false, false},
		"a large bundle":  {"36m", 6 << 20, true, true},
		"no room for any": {"5m", 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := mounted(t, c.size)
			path := "var/lib/muster/outbox/2.log"
			if c.bundle {
				path = "var/lib/muster/bundles/sha256-1/large"
			}
			d.write(path, strings.Repeat("x", c.state))
			before := names(t, d.root)
			ok, out := d.output("save")
			if ok != c.fit {
				t.Fatalf("the upgrade goes on: %t, with %q", ok, out)
			}
			if c.fit {
				return
			}
			if !strings.Contains(out, "muster is not upgraded: this needs ") || !strings.Contains(out, " MB in "+filepath.Join(d.root, "var/lib")+", whose file system has ") {
				t.Errorf("it says %q", out)
			}
			if after := names(t, d.root); after != before {
				t.Errorf("left is %s, not %s", after, before)
			}
		})
	}
}
