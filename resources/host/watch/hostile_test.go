package watch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/watch"
)

// chain makes links l1 to l2 and so on in a directory, each with some names more than that,
// and a directory at the end. It returns the first.
func chain(t *testing.T, dir string, links, names int) string {
	t.Helper()
	mkdir(t, dir+"/x")
	mkdir(t, fmt.Sprintf("%s/l%d", dir, links+1))
	for i := links; i > 0; i-- {
		text := fmt.Sprintf("%sl%d", strings.Repeat("x/../", names/2), i+1)
		check(t, os.Symlink(text, fmt.Sprintf("%s/l%d", dir, i)))
	}

	return dir + "/l1"
}

// TestNamesOfLinks: the owner of a directory makes a path with excessively many link names. It cannot be
// watched, and costs no more.
func TestNamesOfLinks(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	first := chain(t, dir, 39, 1600)
	for _, name := range []string{first + "/f", first} {
		if _, err := w.Arm(path(name), nil); !errors.Is(err, watch.ErrLimit) || !strings.Contains(err.Error(), "256 names") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := w.Stats(); s.Directories != 0 || s.Points != 0 {
		t.Errorf("left behind: %+v", s)
	}
	// An earlier watch reports it, and works again after the links are gone.
	check(t, os.Symlink("x", dir+"/way"))
	o := arm(t, w, path(dir+"/way/f"))
	pass(t, w, o)
	check(t, os.Symlink(first, dir+"/new"))
	rename(t, dir+"/new", dir+"/way")
	for o.Err() == nil {
		o.waits(t, "it cannot be watched any more")
	}
	check(t, os.Remove(dir+"/way"))
	for o.Err() != nil {
		o.waits(t, "it can be watched again")
	}
}

// TestHopsOfLinks passes by a name many times: it counts once.
func TestHopsOfLinks(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	first := chain(t, dir, 10, 20)
	straight := arm(t, w, path(dir+"/l11/f"))
	before := watch.Hops(w)
	straight.Close()
	o := arm(t, w, path(first+"/f"))
	if hops := watch.Hops(w) - before; hops != 11 {
		t.Errorf("%d more hops than without links, not l1 to l10 and x", hops)
	}
	pass(t, w, o)
	check(t, os.Chmod(dir+"/x", 0o700))
	o.waits(t, "a directory on the way of a link")
}

// TestErrBesideWork asks a watch for its error while the watcher is at work.
func TestErrBesideWork(t *testing.T) {
	t.Parallel()
	w := newWatcher(t)
	o := arm(t, w, path(filepath.Join(t.TempDir(), "f")))
	release := watch.Hold(w)
	defer release()
	answered := make(chan error, 1)
	go func() { answered <- o.Err() }()
	select {
	case err := <-answered:
		check(t, err)
	case <-time.After(patience):
		t.Error("the watcher is waited for")
	}
}

// TestWhatALinkThatWaitsLeadsTo: changes behind a link before its path is resolved again are reported then.
func TestWhatALinkThatWaitsLeadsTo(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/one")
	mkdir(t, dir+"/two")
	check(t, os.Symlink("two/f", dir+"/l"))
	link := arm(t, w, path(dir+"/l"))
	for _, to := range []string{"one", "two", "one"} {
		pass(t, w, link)
		watch.Exhaust(w)
		check(t, os.Remove(dir+"/l"))
		check(t, os.Symlink(to+"/f", dir+"/l"))
		link.waits(t, "the link is another")
		pass(t, w, link)
		write(t, dir+"/"+to+"/f", "x")
		link.waits(t, "what it leads to was written")
	}
}

// TestWaysThatChangeAllTheTime goes a way less often when the ways have taken much time
// lately, and loses nothing.
func TestWaysThatChangeAllTheTime(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/a/b")
	mkdir(t, dir+"/target")
	check(t, os.Symlink("target", dir+"/link"))
	o, link := arm(t, w, path(dir+"/a/b/f")), arm(t, w, path(dir+"/link"))
	for range 3 {
		pass(t, w, o, link)
		watch.Exhaust(w)
		rename(t, dir+"/a", dir+"/away")
		mkdir(t, dir+"/a/b")
		o.waits(t, "its directory is another, wherever the way leads")
		check(t, os.Remove(dir+"/link"))
		check(t, os.Symlink("target", dir+"/link"))
		link.waits(t, "the link is another")
		for end := time.Now().Add(patience); watch.Deferred(w) > 0; pass(t, w) {
			if time.Now().After(end) {
				t.Fatal("the ways are not gone later")
			}
		}
		pass(t, w, o, link)
		write(t, dir+"/a/b/f", "x")
		o.waits(t, "it is watched where it is")
		check(t, os.RemoveAll(dir+"/away"))
	}
}
