//go:build system

package link_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/link"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemLinksOfStrangers: in the directory of another user, a link belongs to that user, who could move a
// link of root elsewhere.
func TestSystemLinksOfStrangers(t *testing.T) {
	hosttest.NeedRoot(t)
	stranger := strconv.Itoa(hosttest.Stranger)
	home := func(t *testing.T, dir string) {
		t.Helper()
		check(t, os.Chmod(dir, 0o755))
		check(t, os.Chown(dir, hosttest.Stranger, hosttest.Stranger))
	}
	then := func(steps ...setup) setup {
		return func(t *testing.T, dir string) {
			for _, step := range steps {
				step(t, dir)
			}
		}
	}
	belongs := func(uid, gid uint32) setup {
		return func(t *testing.T, dir string) {
			t.Helper()
			var st unix.Stat_t
			check(t, unix.Lstat(filepath.Join(dir, "x"), &st))
			if st.Uid != uid || st.Gid != gid {
				t.Errorf("belongs to %d:%d, want %d:%d", st.Uid, st.Gid, uid, gid)
			}
		}
	}
	as := func(owner, group string) typetest.Properties {
		return typetest.Properties{"owner": owner, "group": group}
	}
	typetest.Run(t, typetest.Config{Type: link.New(link.Posix{}), ReadOnly: typetest.Only("getent "), Cases: []typetest.Case{
		{Name: "new, of root", Properties: to("t", nil), Message: "Would have created the link", Check: belongs(0, 0)},
		{Name: "new, of another user", Properties: to("t", as("1", "2")), Message: "Would have created the link", Check: belongs(1, 2)},
		{Name: "other owner", Setup: withLink("t"), Properties: to("t", as("1", "2")), Message: "Would have updated attributes", Check: belongs(1, 2)},
		{Name: "same owner", Setup: withLink("t"), Properties: to("t", as("0", "root"))},
		{Name: "new, in a home", Setup: home, Properties: to("t", nil), Message: "Would have created the link", Check: belongs(hosttest.Stranger, hosttest.Stranger)},
		{Name: "owner of the home", Setup: home, Properties: to("t", as(stranger, "0")), Message: "Would have created the link", Check: belongs(hosttest.Stranger, 0)},
		{Name: "root as owner in a home", Setup: home, Properties: to("t", as("root", "root")), Error: "give the link the same owner"},
		{Name: "moved there", Setup: then(withLink("old"), home), Properties: to("t", nil), Message: "Would have changed the target from old to t", Check: belongs(hosttest.Stranger, hosttest.Stranger)},
	}})

	open := t.TempDir()
	check(t, os.Chmod(open, 0o777))
	if err := hosttest.New(t).Link(filepath.Join(open, "x"), "/etc", 0, 0); err == nil {
		t.Error("a link of root was made in a directory that everybody may write to")
	}
	dir := t.TempDir()
	home(t, dir)
	if err := hosttest.New(t).Link(filepath.Join(dir, "x"), "/etc", 0, 0); err == nil {
		t.Error("a link of root was made in the directory of another user")
	}
	if names, err := os.ReadDir(dir); len(names) > 0 || err != nil {
		t.Error(names, err)
	}
}

// TestSystemExchangedLinks: a user who exchanges the temporary links in a directory of that user gains no file
// and no link of root.
func TestSystemExchangedLinks(t *testing.T) {
	hosttest.NeedRoot(t)
	dir, h := t.TempDir(), hosttest.New(t)
	check(t, os.WriteFile(filepath.Join(dir, "victim"), []byte("secret"), 0o600))
	check(t, os.Chown(dir, hosttest.Stranger, hosttest.Stranger))
	over, ended := make(chan struct{}), make(chan int)
	go func() {
		exchanged := 0
		for {
			select {
			case <-over:
				ended <- exchanged
				return
			default:
			}
			names, _ := filepath.Glob(filepath.Join(dir, ".muster-*"))
			for _, name := range names {
				if unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, filepath.Join(dir, "victim"), unix.RENAME_EXCHANGE) == nil {
					exchanged++
				}
			}
		}
	}()
	for i := range 3000 {
		_ = h.Link(filepath.Join(dir, "l"+strconv.Itoa(i%10)), "t", hosttest.Stranger, hosttest.Stranger) // it may fail
	}
	close(over)
	t.Logf("%d exchanges", <-ended)
	for name, item := range hosttest.Snapshot(t, dir) {
		var st unix.Stat_t
		check(t, unix.Lstat(filepath.Join(dir, name), &st))
		switch isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK; {
		case name == "." || name == "":
		case isLink && st.Uid == 0:
			t.Errorf("%s is a link of root", name)
		case !isLink && item.UID != 0:
			t.Errorf("the file of root belongs to %d: %s", item.UID, name)
		}
	}
}

// TestSystemMountPoint: a link replaces no mount point.
func TestSystemMountPoint(t *testing.T) {
	hosttest.NeedRoot(t)
	dir := hosttest.MountTmpfs(t, "", 0)
	uid, gid, err := files.LinkOwner(dir)
	check(t, err)
	if err := hosttest.New(t).Link(dir, "t", uid, gid); err == nil {
		t.Error("replaced")
	}
}
