package watch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/alone"
)

// TestOverflow loses events: everybody is woken, and the watches are where they
// belong.
func TestOverflow(t *testing.T) {
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/busy")
	mkdir(t, dir+"/quiet")
	mkdir(t, dir+"/moved/d")
	busy, quiet := arm(t, w, path(dir+"/busy/f")), arm(t, w, path(dir+"/quiet/f"))
	moved, tree := arm(t, w, path(dir+"/moved/d/f")), arm(t, w, watch.Point{Kind: watch.Tree, Name: dir + "/tree"})
	write(t, dir+"/busy/f", "")
	write(t, dir+"/busy/g", "")
	pass(t, w, busy, quiet, moved, tree)
	release := watch.Hold(w)
	overflow(t, dir+"/busy")
	rename(t, dir+"/moved", dir+"/away")
	mkdir(t, dir+"/moved/d")
	mkdir(t, dir+"/tree/x")
	release()
	for _, o := range []*observer{busy, quiet, moved, tree} {
		o.waits(t, "events were lost")
	}
	settle(t, w, tree)
	pass(t, w, busy, quiet, moved, tree)
	write(t, dir+"/moved/d/f", "")
	moved.waits(t, "the watch is where the directory is")
	write(t, dir+"/tree/x/f", "")
	tree.waits(t, "the watches are where the tree is")
	busy.sleeps(t, w, "nothing of it changed")
}

// overflow has more events come from a directory with the files f and g than the kernel queues.
func overflow(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	check(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	check(t, err)
	// Twice the queue, for events that are read before the lock is awaited. Two equal events in a row are
	// one.
	for i := range 2 * most {
		check(t, os.Chmod(dir+"/"+string("fg"[i%2]), os.FileMode(0o600+i%2)))
	}
}

// TestLoudDirectory: where events are lost all the time, the directory that they come from is not
// watched for a while. All others are.
func TestLoudDirectory(t *testing.T) {
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/loud/below")
	mkdir(t, dir+"/quiet")
	loud, below := arm(t, w, path(dir+"/loud/f")), arm(t, w, path(dir+"/loud/below/f"))
	quiet, tree := arm(t, w, path(dir+"/quiet/f")), arm(t, w, watch.Point{Kind: watch.Tree, Name: dir + "/loud"})
	write(t, dir+"/loud/f", "")
	write(t, dir+"/loud/g", "")
	all := []*observer{loud, below, quiet, tree}
	pass(t, w, all...)
	for range 2 {
		release := watch.Hold(w)
		overflow(t, dir+"/loud")
		release()
		for _, o := range all {
			o.waits(t, "events were lost")
		}
		settle(t, w, tree)
		pass(t, w, all...)
		watch.AgeOverflows(w)
	}
	for _, o := range []*observer{loud, below, tree} {
		if err := o.Err(); !errors.Is(err, watch.ErrLimit) || !strings.Contains(err.Error(), "more events than the kernel queues") {
			t.Errorf("%v", err)
		}
	}
	if err := quiet.Err(); err != nil {
		t.Error(err)
	}
	write(t, dir+"/quiet/f", "")
	quiet.waits(t, "it is watched")
	write(t, dir+"/loud/f", "other")
	loud.sleeps(t, w, "it is not watched")

	watch.EndNoise(w)
	watch.RetryNow(w)
	write(t, dir+"/quiet/f", "")
	for _, o := range all {
		o.waits(t, "they are watched again")
		if err := o.Err(); err != nil {
			t.Error(err)
		}
	}
	settle(t, w, tree)
	pass(t, w, all...)
	write(t, dir+"/loud/below/f", "")
	below.waits(t, "its directory is watched again")
}

// TestReleased counts what the kernel has: one descriptor, a watch a directory, and
// nothing in the end.
func TestReleased(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	dir := t.TempDir()
	files := filepath.Join(dir, "d", "files")
	mkdir(t, files)
	w := watch.New(nil)
	if descriptors, _ := kernelWatches(t); descriptors != 0 {
		t.Errorf("%d descriptors before the first watch", descriptors)
	}
	root := arm(t, w, path(files))
	_, above := kernelWatches(t)
	var observers []*observer
	for i := range 1000 {
		observers = append(observers, arm(t, w, path(filepath.Join(files, strconv.Itoa(i)))))
	}
	observers = append(observers, arm(t, w, watch.Point{Kind: watch.Path, Name: files + "/p", After: files + "/lock"}))
	resolved := func() {
		t.Helper()
		// Paths are resolved again for names that were missing at first.
		for pass(t, w, observers...); watch.Deferred(w) > 0; {
			pass(t, w, observers...)
		}
	}
	for _, away := range []string{"one", "two"} {
		resolved()
		want := above + 1
		descriptors, watches := kernelWatches(t)
		if s := w.Stats(); descriptors != 1 || watches != want || s.Directories != want || s.Points != 1002 {
			t.Errorf("%d descriptors with %d watches, not 1 with %d; %+v", descriptors, watches, want, s)
		}
		// Elsewhere there is another directory of the name, with the same files.
		rename(t, dir+"/d", dir+"/"+away)
		mkdir(t, files)
		for _, o := range observers {
			o.waits(t, "the directory is another")
		}
	}
	resolved()
	trees := arm(t, w, watch.Point{Kind: watch.Tree, Name: dir})
	if _, watches := kernelWatches(t); watches != above+5 {
		t.Errorf("%d watches with the tree, not %d", watches, above+5)
	}
	trees.Close()
	for _, o := range observers {
		o.Close()
		o.Close()
	}
	if _, watches := kernelWatches(t); watches != above {
		t.Errorf("%d watches of one point, not %d", watches, above)
	}
	root.Close()
	if descriptors, watches := kernelWatches(t); descriptors != 1 || watches != 0 {
		t.Errorf("%d descriptors with %d watches in the end", descriptors, watches)
	}
	last := arm(t, w, path(files))
	w.Close()
	if descriptors, _ := kernelWatches(t); descriptors != 0 {
		t.Errorf("%d descriptors of a watcher that was closed", descriptors)
	}
	if !errors.Is(last.Err(), watch.ErrClosed) {
		t.Errorf("the error of a watch is %v", last.Err())
	}
	if _, err := w.Arm(path(files), nil); !errors.Is(err, watch.ErrClosed) {
		t.Errorf("a closed watcher: %v", err)
	}
	last.Close()
}

// TestLimit reaches a limit of the kernel, at the first watch and after a change, and recovers.
func TestLimit(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	w, dir := newWatcher(t), t.TempDir()
	mkdir(t, dir+"/a/b")
	mkdir(t, dir+"/c/d")
	var before unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	limit := func(files uint64) {
		check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: before.Max}))
	}
	limit(3)
	_, err := w.Arm(path(dir+"/a/b/f"), nil)
	limit(before.Cur)
	if !errors.Is(err, watch.ErrLimit) {
		t.Errorf("no descriptor was left: %v", err)
	}
	o, other := arm(t, w, path(dir+"/a/b/f")), arm(t, w, path(dir+"/c/d"))
	pass(t, w, o, other)
	limit(3)
	check(t, os.Rename(dir+"/a", dir+"/z"))
	for o.Err() == nil {
		o.waits(t, "it cannot be watched any more")
	}
	if s := w.Stats(); len(s.Fallbacks) != 1 || s.Fallbacks[0].Point != path(dir+"/a/b/f") || !errors.Is(s.Fallbacks[0].Err, watch.ErrLimit) {
		t.Errorf("%+v", s)
	}
	check(t, os.Chmod(dir+"/c/d", 0o700))
	other.waits(t, "others are watched as before")
	limit(before.Cur)
	watch.RetryNow(w)
	check(t, os.Chmod(dir+"/c/d", 0o755))
	for o.Err() != nil {
		o.waits(t, "it can be watched again")
	}
	pass(t, w, o)
	mkdir(t, dir+"/a/b")
	o.waits(t, "it is watched again")
	if s := w.Stats(); len(s.Fallbacks) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAfter waits for the end of the holder of a lock.
func TestAfter(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	o := arm(t, w, watch.Point{Kind: watch.Path, Name: dir + "/status", After: dir + "/lock"})
	write(t, dir+"/status", "nobody holds it, nobody has made it")
	o.waits(t, "no lock")
	manager := actor.Play(t, "package manager", dir+"/lock")
	pass(t, w, o)
	for _, text := range []string{"one", "two"} {
		write(t, dir+"/status", text)
		o.sleeps(t, w, "the package manager still works")
	}
	manager.End(t)
	o.waits(t, "the lock is free")
	// A lock file that cannot be opened safely delays nothing.
	check(t, os.Remove(dir+"/lock"))
	check(t, unix.Mkfifo(dir+"/lock", 0o600))
	pass(t, w, o)
	write(t, dir+"/status", "three")
	o.waits(t, "a fifo for a lock")
}

// TestAfterOthers waits only for relevant holders, and not without end.
func TestAfterOthers(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	write(t, dir+"/lock", "")
	o := arm(t, w, watch.Point{Kind: watch.Path, Name: dir + "/status", After: dir + "/lock"})
	reader := actor.Play(t, "reader", dir+"/lock")
	pass(t, w, o)
	write(t, dir+"/status", "one")
	o.waits(t, "who has a read lock changes nothing")
	reader.Kill()
	actor.Play(t, "package manager", dir+"/lock")
	pass(t, w, o)
	write(t, dir+"/status", "two")
	o.sleeps(t, w, "the package manager works")
	watch.AgeLocks(w)
	write(t, dir+"/status", "three")
	o.waits(t, "it hangs")
	write(t, dir+"/status", "four")
	o.sleeps(t, w, "it is waited for again")
}

// TestManyAtOnce arms and closes while everything changes.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w, dir := newWatcher(t), t.TempDir()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			at := filepath.Join(dir, strconv.Itoa(i%2), "d")
			for range 100 {
				o := arm(t, w, path(at+"/f"))
				tree := arm(t, w, watch.Point{Kind: watch.Tree, Name: filepath.Dir(at)})
				_ = os.MkdirAll(at, 0o755)
				_ = os.WriteFile(at+"/f", nil, 0o644)
				_ = os.Rename(filepath.Dir(at), dir+"/away"+strconv.Itoa(i))
				_ = os.RemoveAll(dir + "/away" + strconv.Itoa(i))
				o.waits(t, "the directory came or went")
				tree.waits(t, "the directory came or went")
				o.Close()
				tree.Close()
			}
		})
	}
	all.Wait()
	if s := w.Stats(); s.Points != 0 || s.Directories != 0 {
		t.Errorf("in the end: %+v", s)
	}
}

func TestNoPoint(t *testing.T) {
	t.Parallel()
	w := newWatcher(t)
	for _, p := range []watch.Point{{}, path(""), path("relative"), path("/a\x00b"), {Kind: "else", Name: "/etc"}, {Kind: watch.Path, Name: "/etc", After: "lock"}, {Kind: watch.Unit}} {
		if _, err := w.Arm(p, nil); !errors.Is(err, watch.ErrNone) {
			t.Errorf("%q: %v", p, err)
		}
	}
	arm(t, w, path("/"))
}

// TestATreeLeavesWatches to others: the owner of a directory in the tree may make any number of directories.
func TestATreeLeavesWatches(t *testing.T) {
	w, dir := newWatcher(t), t.TempDir()
	for i := range 4 {
		mkdir(t, filepath.Join(dir, "tree", strconv.Itoa(i)))
	}
	first := arm(t, w, path(dir+"/f"))
	pass(t, w, first)
	watch.LimitWatches(w, 4*5)
	tree := arm(t, w, watch.Point{Kind: watch.Tree, Name: dir + "/tree"})
	mkdir(t, filepath.Join(dir, "tree", "more"))
	tree.waits(t, "a directory was made")
	settle(t, w, tree)
	pass(t, w, first, tree)
	if err := tree.Err(); !errors.Is(err, watch.ErrLimit) || !strings.Contains(err.Error(), "more than 5 directories (at most a quarter of fs.inotify.max_user_watches)") {
		t.Errorf("with one more: %v", err)
	}
	if s := w.Stats(); s.Directories > 10 {
		t.Errorf("%d directories are watched", s.Directories)
	}
}
