package scaffold

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestWalkOfADeepTree walks nested directories with paths that are too long for the system. The owner of
// a target can make them at no cost.
func TestWalkOfADeepTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	for range 2500 {
		above := at
		if err == nil {
			err = unix.Mkdirat(above, "d", 0o755)
		}
		if err == nil {
			at, err = unix.Openat(above, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(above)
	}
	_ = unix.Close(at)
	t.Cleanup(func() {
		if err := hosttest.New(t).RemoveAll(context.Background(), dir+"/d"); err != nil {
			t.Error(err)
		}
	})
	w := walker{visit: func(string, fs.FileMode) error { return nil }, left: maxWalked}
	err = w.walk(t.Context(), dir)
	if err == nil || !strings.HasPrefix(err.Error(), dir+"/d/d/") || !strings.Contains(err.Error(), "deeper than a path can be: remove them") || len(err.Error()) > 300 {
		t.Errorf("the error is %.400v", err)
	}
}

// TestWalkOfManyFiles has more files than a walk may find, in one directory and in
// several, and as many.
func TestWalkOfManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosttest.MakeTree(t, dir, "a", "b/", "b/c", "b/d", "e/", "e/f")
	cost := 6*entryCost + 6*len(dir) + len("/a/b/b/c/b/d/e/e/f")
	for _, most := range []int{cost, cost - 1, 5 * entryCost, 2 * entryCost, 0} {
		found := 0
		w := walker{visit: func(string, fs.FileMode) error { found++; return nil }, left: most}
		err := w.walk(t.Context(), dir)
		if most == cost && (err != nil || found != 4) {
			t.Errorf("all of %d: %d files, %v", most, found, err)
		}
		if most < cost && (err == nil || err.Error() != dir+" has too many files for a scaffold: remove some, or name another directory" || found > 3) {
			t.Errorf("%d: %d files, %v", most, found, err)
		}
	}
}

// TestWalkOfWhatIsRemoved removes directories during the walk. In a target they count as missing, in a
// source they are an error.
func TestWalkOfWhatIsRemoved(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"target": false, "source": true} {
		dir := t.TempDir()
		hosttest.MakeTree(t, dir, "a", "b/", "b/c", "d")
		var found []string
		w := walker{left: maxWalked, mayVanish: !fails, visit: func(path string, _ fs.FileMode) error {
			found = append(found, filepath.Base(path))
			return os.RemoveAll(filepath.Join(dir, "b"))
		}}
		err := w.walk(t.Context(), dir)
		if want := map[bool]string{false: "a d", true: "a"}[fails]; errors.Is(err, fs.ErrNotExist) != fails || strings.Join(found, " ") != want {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
		if err := w.walk(t.Context(), filepath.Join(dir, "b")); errors.Is(err, fs.ErrNotExist) != fails {
			t.Errorf("%s that is gone: %v", name, err)
		}
	}
}
