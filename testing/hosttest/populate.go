package hosttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Populate makes a directory with one of each kind of thing.
func Populate(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "file"), []byte("four"), 0o640),
		os.Chmod(filepath.Join(dir, "file"), 0o640|fs.ModeSetuid),
		os.Chtimes(filepath.Join(dir, "file"), time.Time{}, time.Unix(1000, 5)),
		os.Mkdir(filepath.Join(dir, "dir"), 0o750),
		os.Symlink("file", filepath.Join(dir, "link")),
		os.Symlink("dir", filepath.Join(dir, "dirlink")),
		os.Symlink("nothing", filepath.Join(dir, "dangling")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}

	return dir
}
