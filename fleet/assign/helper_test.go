package assign_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/resources/manifest"
)

// write makes files in a directory. A value with the prefix -> is a link, a name that ends in / a directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, link := strings.CutPrefix(content, "->"); {
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	return dir
}

// anything accepts every manifest, and finds no files in it.
func anything(string, []byte) (manifest.Checked, error) { return manifest.Checked{}, nil }

// naming accepts every manifest and returns these file names.
func naming(paths ...string) assign.ManifestCheck {
	return func(name string, _ []byte) (manifest.Checked, error) {
		var files []manifest.File
		for i, p := range paths {
			f := manifest.File{Path: p}
			f.Pos.File, f.Pos.Line, f.Pos.Column = name, i+1, 3
			files = append(files, f)
		}
		return manifest.Checked{Files: files}, nil
	}
}

// wantError checks that an error is a sentinel and says something.
func wantError(t testing.TB, err, is error, says string) {
	t.Helper()
	if is != nil && !errors.Is(err, is) {
		t.Fatalf("error is %v, not %v", err, is)
	}
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("error is %v, and does not say %q", err, says)
	}
}
