//go:build system

package archive_test

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

// exchanged extracts entries into the directory of a stranger, who exchanges each right
// after it was made with a victim of the same name. It returns how many were.
func exchanged(t *testing.T, home string, entries []tar.Header) (exchanges int) {
	t.Helper()
	var ended atomic.Bool
	var stranger sync.WaitGroup
	stranger.Go(func() {
		for i := 0; i < len(entries) && !ended.Load(); {
			name, below, _ := strings.Cut(entries[i].Name, "/")
			if below == "" && i > 0 && strings.HasPrefix(entries[i-1].Name, name+"/") {
				return // that was exchanged already
			}
			if unix.Renameat2(unix.AT_FDCWD, home+"/"+name, unix.AT_FDCWD, home+"/victim"+name, unix.RENAME_EXCHANGE) == nil {
				i++
				exchanges++
			}
		}
	})
	x := newStand(t, filepath.Join(t.TempDir(), "archive"), pack(t, entries...), archive.Tar, home)
	_, _ = x.Extract(t.Context(), x.disk, home, archive.Limits{}, archive.Options{
		Preserve: true, ResolveOwner: func(o archive.Owner) (uid, gid int) { return o.UID, o.GID },
	})
	ended.Store(true)
	stranger.Wait()

	return exchanges
}

// TestSystemLinkExchangedForAFile has a stranger exchange the links of an archive with
// hard links to a file of root: only links get their owner.
func TestSystemLinkExchangedForAFile(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	secret := filepath.Join(filepath.Dir(home), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var entries []tar.Header
	for i := range 500 {
		entry := link(strconv.Itoa(i), "elsewhere")
		entry.Uid, entry.Gid = hosttest.Stranger, hosttest.Stranger
		entries = append(entries, entry)
		if err := os.Link(secret, home+"/victim"+entry.Name); err != nil {
			t.Fatal(err)
		}
	}
	before := hosttest.Snapshot(t, filepath.Dir(home))["secret"]
	if exchanged(t, home, entries) == 0 {
		t.Error("no race")
	}
	if after := hosttest.Snapshot(t, filepath.Dir(home))["secret"]; after != before {
		t.Errorf("the file of root was %+v and is %+v", before, after)
	}
}

// TestSystemDirectoryExchangedForAnother has a stranger exchange a directory of an
// archive with one of root that is not empty.
func TestSystemDirectoryExchangedForAnother(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, names := range map[string][]string{"itself": {"d"}, "made for what is in it": {"d/below", "d"}} {
		t.Run(name, func(t *testing.T) {
			var entries []tar.Header
			for _, name := range names {
				entry := directory(name, 0o777)
				entry.Uid, entry.Gid = hosttest.Stranger, hosttest.Stranger
				entries = append(entries, entry)
			}
			home := hosttest.Foreign(t)
			exchanges := 0
			for range 100 {
				if err := errors.Join(os.RemoveAll(home+"/d"), os.RemoveAll(home+"/victimd"), os.MkdirAll(home+"/victimd/full", 0o700)); err != nil {
					t.Fatal(err)
				}
				exchanges += exchanged(t, home, entries)
				for _, path := range []string{home + "/d", home + "/victimd"} {
					full, _ := os.Stat(path + "/full")
					info, err := os.Stat(path)
					if full != nil && (err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm() != 0o700) {
						t.Fatalf("%s, a directory of root, is %v: %v", path, info.Mode(), err)
					}
				}
			}
			if exchanges == 0 {
				t.Error("no race")
			}
		})
	}
}
