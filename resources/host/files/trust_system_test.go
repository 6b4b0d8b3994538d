//go:build system

package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemWhatBelongsToOthersIsUntrusted has a file and a state directory of another user that only this
// user may write.
func TestSystemWhatBelongsToOthersIsUntrusted(t *testing.T) {
	hosttest.NeedRoot(t)
	dir := t.TempDir()
	path, state := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "state")
	if err := errors.Join(os.WriteFile(path, []byte("text"), 0o600), os.Mkdir(state, 0o700)); err != nil {
		t.Fatal(err)
	}
	hosttest.Give(t, path, state)
	if _, err := files.ReadTrusted(path, 100, paths.Author{}); !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chown root "+path) {
		t.Errorf("a file: %v", err)
	}
	if err := files.New(files.Options{StateDir: state}).OpenState(true); !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chown root "+state) {
		t.Errorf("a state directory: %v", err)
	}
}
