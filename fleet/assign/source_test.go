package assign_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestReadWaitsForNoPipe reads a pipe without a writer, and a directory with a pipe as manifest.
func TestReadWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, model.BundleManifest)
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		_, err := assign.ReadSource(path, strings.NewReader(""), func(string, []byte) (manifest.Checked, error) { return manifest.Checked{}, nil })
		if err == nil || !strings.HasPrefix(err.Error(), pipe+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
