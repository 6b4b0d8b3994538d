//go:build system

package paths_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemOpenDirOfStrangers covers directories and links of a user who is neither root nor the running
// user.
func TestSystemOpenDirOfStrangers(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "etc/conf/", "stranger/own/", "stranger/own/deep/", "stranger/root/", "stranger/other/",
		"stranger/etc -> DIR/etc", "stranger/up -> ../etc", "stranger/roots -> DIR/etc", "stranger/ownlink -> own", "stranger/absolute -> DIR/stranger/own",
		"stranger/rootsown -> own", "stranger/others -> own", "stranger/hidden -> DIR/closed/own", "run -> etc", "tohome -> stranger/own",
		"closed/", "closed/own/", "sticky/", "sticky/etc -> DIR/etc", "sticky/own -> DIR/stranger/own", "sticky/run -> DIR/etc", "sticky/file -> etc/x",
		"stranger/through -> DIR/run", "stranger/chain -> etc", "stranger/proc -> /proc/self/root/etc", "stranger/chainown -> ownlink/deep")
	for _, name := range []string{"own", "own/deep", "etc", "up", "ownlink", "absolute", "hidden", "through", "chain", "proc", "chainown", "../closed/own", "../sticky/etc", "../sticky/own"} {
		hosttest.Give(t, filepath.Join(home, name))
	}
	for _, name := range []string{"other", "others"} {
		if err := os.Lchown(filepath.Join(home, name), 4321, 4321); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"sticky": 0o777 | os.ModeSticky, "closed": 0o700} {
		if err := os.Chmod(filepath.Join(base, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, real := range map[string]string{
		"stranger": "stranger", "stranger/own/deep": "stranger/own/deep", "stranger/ownlink/deep": "stranger/own/deep", "stranger/absolute": "stranger/own",
		"stranger/rootsown": "stranger/own", "stranger/chainown": "stranger/own/deep", "run/conf": "etc/conf", "tohome/deep": "stranger/own/deep",
		"sticky/own": "stranger/own", "sticky/run": "etc", "closed/own": "closed/own",
	} {
		leads(t, filepath.Join(base, path), filepath.Join(base, real))
	}
	const stranger = "user 54321"
	for path, words := range map[string]string{
		"stranger/root":     base + "/stranger/root belongs to root (0), but " + base + "/stranger to " + stranger + ": give both the same owner",
		"stranger/other":    "belongs to user 4321, but " + base + "/stranger to " + stranger,
		"stranger/etc":      base + "/stranger/etc is a link of " + stranger + " and leads to " + base + "/etc, which belongs to root (0): write the path it leads to, or give the link to root",
		"stranger/etc/conf": base + "/stranger/etc is a link of " + stranger,
		"stranger/up":       base + " belongs to root (0), but " + base + "/stranger to " + stranger,
		"stranger/roots":    base + "/stranger/roots is a link to " + base + "/etc, which belongs to root (0), but " + base + "/stranger to " + stranger,
		"stranger/others":   base + "/stranger/others is a link of user 4321 and leads to own, which belongs to " + stranger,
		"stranger/hidden":   base + "/closed, which not everybody may enter",
		"stranger/through":  base + "/stranger/through is a link of " + stranger,
		"stranger/chain":    base + "/stranger/etc is a link of " + stranger,
		"stranger/proc":     base + "/stranger/proc is a link of " + stranger,
		"sticky/etc":        base + "/sticky/etc is a link of " + stranger,
	} {
		_, err := paths.OpenDir(filepath.Join(base, path))
		if !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, not %q", path, err, words)
		}
	}
}

// TestSystemOpenDirWhileSwapped opens a directory while the owner of its parent exchanges the parent with a
// link: it opens the right directory or refuses.
func TestSystemOpenDirWhileSwapped(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "etc/conf/", "stranger/app/", "stranger/app/conf/", "stranger/evil -> DIR/etc")
	hosttest.Give(t, home+"/app", home+"/app/conf", home+"/evil")
	outside, err := os.Stat(base + "/etc/conf")
	if err != nil {
		t.Fatal(err)
	}
	stop := hosttest.Swap(t, home+"/app", home+"/evil")
	var opened, refused int
	for tries := 0; tries < 5_000 || tries < 100_000 && (opened == 0 || refused == 0); tries++ {
		dir, err := paths.OpenDir(home + "/app/conf")
		if err != nil {
			refused++
			continue
		}
		opened++
		root, err := dir.Root()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := root.Stat("."); err != nil || os.SameFile(got, outside) {
			t.Fatalf("the walk left the directories of its owner: %v", err)
		}
		if err := errors.Join(root.Close(), dir.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if swaps := stop(); swaps == 0 || opened == 0 || refused == 0 {
		t.Errorf("no race: %d swaps, %d opened, %d refused", swaps, opened, refused)
	}
}
