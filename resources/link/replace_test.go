package link_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestALinkIsNeverMissing replaces a link while a reader follows it.
func TestALinkIsNeverMissing(t *testing.T) {
	t.Parallel()
	dir, h := t.TempDir(), hosttest.New(t)
	path := filepath.Join(dir, "current")
	uid, gid, err := files.LinkOwner(path)
	check(t, err)
	check(t, h.Link(path, "release-0", uid, gid))
	var over atomic.Bool
	read := make(chan error, 1)
	go func() {
		var failed error
		for !over.Load() && failed == nil {
			_, failed = os.Readlink(path)
		}
		read <- failed
	}()
	for i := range 200 {
		check(t, h.Link(path, fmt.Sprint("release-", i), uid, gid))
	}
	over.Store(true)
	check(t, <-read)
	if names, err := os.ReadDir(dir); len(names) != 1 || err != nil {
		t.Error(names, err)
	}
}
