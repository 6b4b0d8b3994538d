package state

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
)

// TestADirectoryThatWasSafeIsCheckedAgain when its owner, its mode, or anything on its
// path is another.
func TestADirectoryThatWasSafeIsCheckedAgain(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "parent")
	dir := filepath.Join(parent, "state")
	var c Checked
	if err := c.check(dir); err != nil || c.stands(dir) {
		t.Fatalf("before it is there: %v", err)
	}
	if err := c.Make(dir); err != nil || c.stands(dir) {
		t.Fatalf("when it is made: %v", err)
	}
	if err := c.Make(dir); err != nil || !c.stands(dir) {
		t.Fatalf("it is not remembered: %v", err)
	}
	if c.stands(parent) {
		t.Error("another one stands as well")
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
		if err := c.Make(dir); !errors.Is(err, change.want) {
			t.Errorf("%s: making it: %v", name, err)
		}
		if err := c.check(dir); !errors.Is(err, change.want) {
			t.Errorf("%s: checking it: %v", name, err)
		}
		if err := errors.Join(change.undo(), c.check(dir)); err != nil {
			t.Errorf("%s: and no longer: %v", name, err)
		}
	}
	if err := errors.Join(os.Rename(parent, parent+".real"), os.Symlink(parent+".real", parent), c.check(dir)); err != nil || c.stands(dir) {
		t.Errorf("it stands behind a link: %v", err)
	}
}

// TestAFormatIsReadAgain after its file was touched.
func TestAFormatIsReadAgain(t *testing.T) {
	t.Parallel()
	d := New(filepath.Join(t.TempDir(), "state"), slog.New(slog.DiscardHandler))
	path := filepath.Join(d.path, "format")
	if err := d.OpenState(true); err != nil {
		t.Fatal(err)
	}
	mark, settled := formatMark(path)
	if settled || d.isKnown(mark) {
		t.Error("it was written a moment ago, and may be written to again in the same tick")
	}
	d.know(mark) // as if it had stood for a while
	if err := os.WriteFile(path+".new", []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path+".new", path), d.OpenState(true)); !errors.Is(err, ErrFormat) {
		t.Errorf("a newer one: %v", err)
	}
	if _, settled := formatMark("/etc/passwd.missing"); settled {
		t.Error("none is settled")
	}
}
