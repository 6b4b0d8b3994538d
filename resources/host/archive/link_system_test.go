//go:build system

package archive_test

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemLinkExchangedForAFile has a stranger exchange each link of an archive, right
// after it was made, with a hard link to a file of root: only links get their owner.
func TestSystemLinkExchangedForAFile(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	secret := filepath.Join(filepath.Dir(home), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var entries []tar.Header
	for i := range 500 {
		entry := link(fmt.Sprintf("%d", i), "elsewhere")
		entry.Uid, entry.Gid = hosttest.Stranger, hosttest.Stranger
		entries = append(entries, entry)
		if err := os.Link(secret, fmt.Sprintf("%s/victim%d", home, i)); err != nil {
			t.Fatal(err)
		}
	}
	content := pack(t, entries...)
	var ended atomic.Bool
	var exchanged int
	var stranger sync.WaitGroup
	stranger.Go(func() {
		for i := 0; i < len(entries) && !ended.Load(); {
			if unix.Renameat2(unix.AT_FDCWD, fmt.Sprintf("%s/%d", home, i), unix.AT_FDCWD, fmt.Sprintf("%s/victim%d", home, i), unix.RENAME_EXCHANGE) == nil {
				i++
				exchanged++
			}
		}
	})
	before := hosttest.Snapshot(t, filepath.Dir(home))["secret"]
	x := newStand(t, filepath.Join(t.TempDir(), "archive"), content, archive.Tar, home)
	_, err := x.Extract(t.Context(), x.disk, home, archive.Limits{}, archive.Options{
		Preserve: true, ResolveOwner: func(o archive.Owner) (uid, gid int) { return o.UID, o.GID },
	})
	ended.Store(true)
	stranger.Wait()
	if exchanged == 0 {
		t.Errorf("no race: %v", err)
	}
	if after := hosttest.Snapshot(t, filepath.Dir(home))["secret"]; after != before {
		t.Errorf("the file of root was %+v and is %+v", before, after)
	}
}
