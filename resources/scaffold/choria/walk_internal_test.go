package choria

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestWalkOfADeepTree has directories in each other whose names no path can hold: whoever
// owns a target makes them at no cost.
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
	err = walk(t.Context(), dir, func(string, fs.FileMode) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), dir+"/d/d/") || !strings.Contains(err.Error(), "deeper than a path can be: remove them") || len(err.Error()) > 300 {
		t.Errorf("the error is %.400v", err)
	}
}
