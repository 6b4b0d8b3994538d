package state

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
)

// TestADirectoryThatWasSafeIsCheckedAgain tests that each use checks the owner and the mode of the
// directory and of its parents.
func TestADirectoryThatWasSafeIsCheckedAgain(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "parent")
	dir := filepath.Join(parent, "state")
	check := func() error { _, err := Check(dir); return err }
	if err := errors.Join(check(), Make(dir), Make(dir), check()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]struct {
		do, undo func() error
		want     error
	}{
		"everybody may write to it":         {func() error { return os.Chmod(dir, 0o777) }, func() error { return os.Chmod(dir, 0o700) }, paths.ErrUntrusted},
		"everybody may write to its parent": {func() error { return os.Chmod(parent, 0o777) }, func() error { return os.Chmod(parent, 0o755) }, paths.ErrUnsafe},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if err := Make(dir); !errors.Is(err, change.want) {
			t.Errorf("%s: making it: %v", name, err)
		}
		if err := check(); !errors.Is(err, change.want) {
			t.Errorf("%s: checking it: %v", name, err)
		}
		if err := errors.Join(change.undo(), check()); err != nil {
			t.Errorf("%s: and no longer: %v", name, err)
		}
	}
	if err := errors.Join(os.Rename(parent, parent+".real"), os.Symlink(parent+".real", parent), check()); err != nil {
		t.Errorf("behind a link: %v", err)
	}
}

// TestAFormatIsReadAgain tests that a replaced format file is read again.
func TestAFormatIsReadAgain(t *testing.T) {
	t.Parallel()
	d := New(filepath.Join(t.TempDir(), "state"), slog.New(slog.DiscardHandler))
	path := filepath.Join(d.path, "format")
	if err := d.OpenState(true); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path+".new", path), d.OpenState(true)); !errors.Is(err, ErrFormat) {
		t.Errorf("a newer one: %v", err)
	}
}
