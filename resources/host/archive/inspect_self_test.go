package archive_test

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
)

// TestInspectOfAnEntryInThePlaceOfTheArchive has archives in their own target.
func TestInspectOfAnEntryInThePlaceOfTheArchive(t *testing.T) {
	for name, refused := range map[string]bool{
		"archive": true, "./archive": true, "archive/below": true, "in/archive": true,
		"other": false, "in/other": false, "deep/archive": false, "archive2": false,
	} {
		dir := t.TempDir()
		target := filepath.Join(dir, "target")
		if err := errors.Join(os.Mkdir(target, 0o755), os.Symlink(".", filepath.Join(target, "in"))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(target, "archive")
		plain := pack(t, regular("first", "x", 0o644), regular(name, "x", 0o644))
		for format, content := range map[archive.Format][]byte{archive.Tar: plain, archive.TarGz: zip(t, plain), archive.Zip: packZip(t, member{name: "first"}, member{name: name, content: "x"})} {
			_, err := newStand(t, path, content, format, target).inspect(t.Context(), archive.Limits{})
			if errors.Is(err, archive.ErrUnsafeEntry) != refused || !refused && err != nil || refused && !strings.Contains(err.Error(), "replace the archive itself") {
				t.Errorf("%s, %s: %v", format, name, err)
			}
		}
	}
	for kind, entry := range map[string]tar.Header{"a directory": directory("archive", 0o755), "a link": link("archive", "other"), "a hard link to it": hard("other", "archive")} {
		dir := t.TempDir()
		path := filepath.Join(dir, "archive")
		if _, err := newStand(t, path, pack(t, entry), archive.Tar, dir).inspect(t.Context(), archive.Limits{}); !errors.Is(err, archive.ErrUnsafeEntry) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
