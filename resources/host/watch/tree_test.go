package watch_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/watch"
)

// TestTree changes files in a tree, also in new directories, in moved ones and below the depth limit.
func TestTree(t *testing.T) {
	t.Parallel()
	w := newWatcher(t)
	dir := t.TempDir()
	top := dir + "/a/top"
	o := arm(t, w, watch.Point{Kind: watch.Tree, Name: top})
	mkdir(t, dir+"/elsewhere/x/y")
	pass(t, w, o)
	for i, step := range []func(){
		func() { mkdir(t, top) },
		func() { write(t, top+"/f", "") },
		func() { mkdir(t, top+"/b/c/d") },
		func() { write(t, top+"/b/c/d/f", "") },
		func() { check(t, os.Chmod(top+"/b/c/d/f", 0o600)) },
		func() { rename(t, dir+"/elsewhere", top+"/b/moved") },
		func() { write(t, top+"/b/moved/x/y/f", "") },
		func() { check(t, os.Remove(top+"/b/moved/x/y/f")) },
		func() { check(t, os.Symlink("/etc", top+"/b/link")) },
		func() { rename(t, dir+"/a", dir+"/z") },
		func() { mkdir(t, top+"/n") },
		func() { write(t, top+"/n/f", "") },
	} {
		settle(t, w, o)
		step()
		o.waits(t, "step "+strconv.Itoa(i))
	}
	settle(t, w, o)
	// A directory that was moved away is no longer part of the tree.
	write(t, dir+"/z/top/b/c/d/f", "new")
	write(t, dir+"/z/top/b/moved/x/y/f", "new")
	o.sleeps(t, w, "a directory that was moved out of the tree")
}

// settle waits until the tree was gone through: that is put off for a while when it was
// gone through a moment ago, and followed by a wake.
func settle(t testing.TB, w *watch.Watcher, o *observer) {
	t.Helper()
	for watch.Unsettled(w) {
		o.waits(t, "the tree is gone through")
	}
	pass(t, w, o)
}

// TestTreeBounds makes trees that are larger than anybody should have.
func TestTreeBounds(t *testing.T) {
	t.Parallel()
	w := newWatcher(t)
	deep := t.TempDir()
	mkdir(t, deep+strings.Repeat("/d", 250))
	if _, err := w.Arm(watch.Point{Kind: watch.Tree, Name: deep}, nil); !errors.Is(err, watch.ErrLimit) || !strings.Contains(err.Error(), "within each other") {
		t.Errorf("a deep tree: %v", err)
	}
	top := t.TempDir() + "/top"
	o := arm(t, w, watch.Point{Kind: watch.Tree, Name: top})
	mkdir(t, top)
	settle(t, w, o)
	if err := o.Err(); err != nil {
		t.Errorf("an empty tree: %v", err)
	}
	rename(t, deep, top+"/deep")
	for o.Err() == nil {
		o.waits(t, "a tree that has become too deep")
	}
	s := w.Stats()
	if len(s.Fallbacks) != 1 || s.Fallbacks[0].Point.Name != top || !errors.Is(s.Fallbacks[0].Err, watch.ErrLimit) || s.Directories > 10 {
		t.Errorf("%+v", s)
	}
	check(t, os.RemoveAll(top+"/deep"))
	watch.RetryNow(w)
	write(t, top+"/f", "")
	for o.Err() != nil {
		o.waits(t, "a tree that can be watched again")
	}
}

// TestTreesShareTheirTime changes a tree after others used all the time: its old watches stay, and it is
// scanned later.
func TestTreesShareTheirTime(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	o := arm(t, w, watch.Point{Kind: watch.Tree, Name: dir})
	pass(t, w, o)
	end := watch.ExhaustScans(w)
	mkdir(t, dir+"/d")
	o.waits(t, "a new directory")
	if !watch.Unsettled(w) {
		t.Error("a tree is gone through although there is no time for it")
	}
	end()
	write(t, dir+"/f", "")
	settle(t, w, o)
	write(t, dir+"/d/f", "")
	o.waits(t, "a file in the new directory")
}
