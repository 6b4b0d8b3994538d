//go:build system

package archive_test

import (
	pkzip "archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/hosttest"
)

// FuzzInspectZip has whatever Inspect lets pass unpacked by unzip: nothing of
// that may land outside of the target, or have a mode that the umask denies.
func FuzzInspectZip(f *testing.F) {
	for _, members := range [][]member{
		{{name: "d/", mode: fs.ModeDir | 0o755}, {name: "d/f", content: "x", mode: 0o644}},
		{{name: "l", content: "d", mode: fs.ModeSymlink | 0o777}, {name: "x", content: "y"}},
		{{name: "out/x", content: "y"}},
		{{name: `..\up`, content: "y"}},
		{{name: "good", content: "y", change: withExtra("../up")}},
		{{name: "o\xffut/x", content: "y"}},
		{{name: "o\x98ut/x", content: "y", change: func(h *pkzip.FileHeader) { h.CreatorVersion = 63 }}},
		{{name: "f;12", content: "y"}},
		{{name: "d/", mode: fs.ModeDir | fs.ModeSticky | 0o777}, {name: "f", content: "x", mode: fs.ModeSetuid | 0o777}},
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
		if _, err := inspect(t, dir, content, archive.Zip, archive.Limits{Bytes: 1 << 16, Entries: 50}); err != nil {
			return
		}
		before := hosttest.Snapshot(t, dir)
		h := hosttest.New(t)
		prepared, remove, err := archive.PrepareZip(t.Context(), h.Disk, dir+"/archive", false)
		if err != nil {
			t.Fatal(err)
		}
		packed := filepath.Join(t.TempDir(), "archive.zip")
		if err := errors.Join(os.Link(prepared, packed), remove()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Run(t.Context(), command.Command{Argv: []string{"unzip", "-o", "-d", target, packed}}); err != nil {
			t.Fatal(err)
		}
		for name, item := range hosttest.Snapshot(t, target) {
			if item.Target == "" && item.Mode&(0o022|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("%s has mode %v", name, item.Mode)
			}
		}
		for _, line := range hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)) {
			if !strings.HasPrefix(line, "target") && !strings.HasPrefix(line, ".: time") {
				t.Errorf("outside of the target: %s", line)
			}
		}
	})
}
