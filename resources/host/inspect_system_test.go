//go:build system

package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/hosttest"
)

// FuzzInspectZip has whatever Inspect lets pass unpacked by unzip: nothing of
// that may land outside of the target.
func FuzzInspectZip(f *testing.F) {
	for _, members := range [][]member{
		{{name: "d/", mode: fs.ModeDir | 0o755}, {name: "d/f", content: "x", mode: 0o644}},
		{{name: "l", content: "d", mode: fs.ModeSymlink | 0o777}, {name: "x", content: "y"}},
		{{name: "out/x", content: "y"}},
		{{name: `..\up`, content: "y"}},
		{{name: "good", content: "y", change: withExtra("../up")}},
	} {
		f.Add(packZip(f, members...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		target := filepath.Join(dir, "target")
		err := errors.Join(os.Mkdir(target, 0o755), os.WriteFile(filepath.Join(dir, "secret"), []byte("kept"), 0o600), os.Symlink("..", filepath.Join(target, "out")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inspect(t, dir, content, host.Zip, host.UnpackLimits{Bytes: 1 << 16, Entries: 50}); err != nil {
			return
		}
		before := hosttest.Snapshot(t, dir)
		if err := os.Rename(dir+"/archive", dir+"/archive.zip"); err != nil {
			t.Fatal(err)
		}
		if _, err := host.New(host.Options{}).Run(t.Context(), host.Command{Argv: []string{"unzip", "-o", "-d", target, dir + "/archive.zip"}}); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/archive.zip", dir+"/archive"); err != nil {
			t.Fatal(err)
		}
		for _, line := range hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)) {
			if !strings.HasPrefix(line, "target") && !strings.HasPrefix(line, ".: time") {
				t.Errorf("outside of the target: %s", line)
			}
		}
	})
}
