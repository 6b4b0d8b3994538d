package state_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestDeniedStateDirectoryNamesTheRemedy: a user opens the directory of another user, and creates one without
// permission.
func TestDeniedStateDirectoryNamesTheRemedy(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{base, filepath.Dir(base)} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = errors.Join(os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755)) })
	dir := filepath.Join(base, "state")
	var err, checked error
	hosttest.Powerless(t, func() {
		checked = state.CheckWritable(dir)
		err = state.New(dir, slog.New(slog.DiscardHandler)).OpenState(true)
	})
	if want := "cannot make the state directory: permission denied ("; !errors.Is(checked, state.ErrDenied) || !strings.Contains(checked.Error(), want) {
		t.Errorf("the check returns %v", checked)
	}
	if !errors.Is(err, state.ErrDenied) || !strings.Contains(err.Error(), "permission denied (run it as root, or set another directory with --state-dir)") {
		t.Errorf("the error is %v", err)
	}
}
