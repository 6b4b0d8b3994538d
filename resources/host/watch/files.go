package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
)

// files watches paths and trees. One goroutine reads the events. It uses the same lock as Arm and Close.
type files struct {
	log    *slog.Logger
	reader sync.WaitGroup

	mu      sync.Mutex
	inotify *inotify
	closed  bool
	// ended is closed when the watcher is closed.
	ended   chan struct{}
	mounts  *paths.MountTable
	folders folders
	locks   locks
	marks   marks
	// overflow is the time when all watches must be marked because events were lost, zero for none. marked is
	// the time of the last marking.
	overflow, marked time.Time
	// told is the time of the last log message about noisy directories.
	told time.Time
	// watches are the watches of points and of lock files. failed are the watches of points with an error.
	// retry is the time of the next attempt to watch them.
	watches, failed map[*pathWatch]struct{}
	retry           time.Time
	// walks is the time quota for resolving routes again, scans the quota for scanning trees again. The owner
	// of a directory can cause this work at any rate.
	walks, scans timeQuota
}

// pathWatch is a watch of a path or a tree. files changes it.
type pathWatch struct {
	files *files
	point Point
	wake  func()
	// folder is the directory of the point. route leads from it to the point.
	folder *folder
	route  route
	tree   *tree
	// isLock means that other watches wait for a lock of the file.
	isLock bool
	// written means that the file was written in place.
	written atomic.Bool
	// stale means that the route must be resolved again, late that this is deferred, woken that wake must be
	// called.
	stale, late, woken bool
	// lost is the error of the path, failed the error of the point.
	lost   error
	failed failure
}

// failure is an error or nil. Reading it needs no lock.
type failure struct{ at atomic.Pointer[error] }

func (f *failure) set(err error) {
	if err == nil {
		f.at.Store(nil)
		return
	}
	f.at.Store(&err)
}

func (f *failure) get() error {
	if err := f.at.Load(); err != nil {
		return *err
	}

	return nil
}

func newFiles(log *slog.Logger) *files {
	n := &inotify{dirs: map[int32]*dir{}, noise: newNoise()}

	return &files{
		log: log, inotify: n, ended: make(chan struct{}), folders: folders{n, map[string]*folder{}}, locks: locks{}, marks: marks{trees: map[*tree]struct{}{}},
		watches: map[*pathWatch]struct{}{}, failed: map[*pathWatch]struct{}{},
	}
}

func (f *files) start() error {
	if f.closed {
		return ErrClosed
	}
	if f.inotify.file != nil {
		return nil
	}
	err := f.inotify.open()
	if err == nil {
		f.reader.Go(f.read)
		f.followMounts()
	}

	return err
}

func (f *files) arm(p Point, wake func()) (*pathWatch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.start(); err != nil {
		return nil, err
	}
	x := f.newWatch(p, wake)
	err := f.folders.watchPath(x)
	if err == nil && p.Kind == Tree {
		x.tree = &tree{watch: x}
		err = x.tree.scan(f.inotify)
	}
	if err == nil && p.After != "" {
		err = f.locks.acquire(x, f.watchLock)
	}
	if err != nil {
		f.remove(x)
		return nil, err
	}

	return x, nil
}

func (f *files) newWatch(p Point, wake func()) *pathWatch {
	x := &pathWatch{files: f, point: p, wake: wake}
	x.route.watch = x
	f.watches[x] = struct{}{}

	return x
}

func (f *files) watchLock(path string) (*pathWatch, error) {
	x := f.newWatch(Point{Kind: Path, Name: path}, nil)
	x.isLock = true
	if err := f.folders.watchPath(x); err != nil {
		f.remove(x)
		return nil, err
	}

	return x, nil
}

// Close ends the watch.
func (x *pathWatch) Close() {
	x.files.mu.Lock()
	defer x.files.mu.Unlock()
	x.files.remove(x)
}

// Err returns the reason why the point is not watched. It does not block.
func (x *pathWatch) Err() error { return x.failed.get() }

// Written reports whether the file was written to.
func (x *pathWatch) Written() bool { return x.written.Swap(false) }

func (f *files) remove(x *pathWatch) {
	if _, armed := f.watches[x]; !armed {
		return
	}
	delete(f.watches, x)
	delete(f.failed, x)
	delete(f.marks.trees, x.tree)
	if f.closed {
		return
	}
	if x.tree != nil {
		x.tree.prune(f.inotify)
	}
	x.route.setHops(f.inotify, nil)
	f.folders.release(x)
	if file := f.locks.release(x); file != nil {
		f.remove(file)
	}
}

func (f *files) close() {
	f.mu.Lock()
	for x := range f.watches {
		x.failed.set(ErrClosed)
	}
	f.end()
	f.mu.Unlock()
	f.reader.Wait()
}

func (f *files) end() {
	if !f.closed {
		f.closed = true
		close(f.ended)
	}
	f.inotify.close()
	if f.mounts != nil {
		f.mounts.Close()
	}
}

// bufferSize is large enough for about a thousand events with short names. If a read leaves room for the
// largest event, maxEvent, the queue is empty.
const (
	bufferSize = 64 << 10
	maxEvent   = unix.SizeofInotifyEvent + unix.NAME_MAX + 1
)

func (f *files) read() {
	file, buffer := f.inotify.file, make([]byte, bufferSize)
	for {
		n, err := file.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			// The read returned no event, so the queue may be full.
			n = 0
		case err != nil:
			f.log.Error("watches of files failed", "error", err)
			f.fail(err)
			return
		}
		for _, wake := range f.handle(buffer[:n]) {
			wake()
		}
	}
}

// fail stops watching. It sets the error of all watches and wakes them.
func (f *files) fail(err error) {
	f.mu.Lock()
	f.end()
	var wakes []func()
	for x := range f.watches {
		x.failed.set(fmt.Errorf("%w: %w", ErrNone, err))
		if !x.isLock {
			f.failed[x] = struct{}{}
			wakes = append(wakes, x.wake)
		}
	}
	f.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// handle marks the watches that the events concern, and settles the marks. An event of an unwatched name costs
// only the lookup. It returns the wake functions to call, and limits the next read to the time when handle must
// be called again.
func (f *files) handle(buffer []byte) []func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	isLast := 0 < len(buffer) && len(buffer) < bufferSize-maxEvent
	for len(buffer) > 0 {
		e, rest, err := nextEvent(buffer)
		if err != nil {
			f.log.Error("watches of files failed", "error", err)
			f.markAll()
			break
		}
		buffer = rest
		d := f.inotify.dirs[e.wd]
		switch {
		case e.has(unix.IN_Q_OVERFLOW):
			f.overflowed(time.Now())
		case d == nil:
		case e.has(unix.IN_IGNORED | unix.IN_UNMOUNT):
			f.inotify.noise.counts[d]++
			f.dirRemoved(d)
		default:
			f.inotify.noise.counts[d]++
			for _, p := range d.hops[string(e.name)] {
				f.marks.markOwner(p.route, e)
			}
			for _, t := range d.trees {
				f.marks.markWoken(t.watch)
				if e.has(entries) && e.has(unix.IN_ISDIR) {
					f.marks.markTree(t)
				}
			}
		}
	}
	if isLast {
		f.inotify.noise.emptied()
	}
	wakes, again := f.settle(time.Now())
	_ = f.inotify.file.SetReadDeadline(again)

	return wakes
}

// overflowed schedules the marking of all watches, because events were lost, and ends the watches of noisy
// directories.
func (f *files) overflowed(now time.Time) {
	f.dropNoisy(f.inotify.noise.overflowed(now))
	f.overflow = model.LaterTime(now, f.marked.Add(markEvery))
}

// dropNoisy ends the watches of noisy directories. The next attempts to watch them fail.
func (f *files) dropNoisy(noisy []*dir) {
	if now := time.Now(); len(noisy) > 0 && now.Sub(f.told) >= overflowWithin {
		// The owner of a tree may have thousands of directories and create others at any time.
		f.told = now
		f.log.Warn("directories not watched because of too many events", "directory", f.nameOf(noisy[0]), "count", len(noisy), "for", noisyFor)
	}
	for _, d := range noisy {
		if f.inotify.dirs[d.wd] != d {
			continue
		}
		f.inotify.forget(d)
		f.dirRemoved(d)
	}
}

// nameOf returns a known path of a directory, for the log.
func (f *files) nameOf(d *dir) string {
	for path, at := range f.folders.byPath {
		if at.end == d {
			return path
		}
	}
	for _, t := range d.trees {
		return "one in " + t.watch.point.Name
	}
	for name, passes := range d.hops {
		for _, p := range passes {
			return "the directory of " + name + " on the path to " + p.route.name()
		}
	}

	return "unknown"
}

// dirRemoved marks all watches that use a directory that is no longer watched.
func (f *files) dirRemoved(d *dir) {
	delete(f.inotify.dirs, d.wd)
	// An unmount causes no event in the parent directory.
	for _, at := range f.folders.byPath {
		if at.end == d {
			f.marks.markDirty(at)
		}
	}
	for _, passes := range d.hops {
		for _, p := range passes {
			f.marks.markOwner(p.route, event{mask: unix.IN_DELETE})
		}
	}
	for _, t := range d.trees {
		f.marks.markTree(t)
	}
}

// markEvery is the shortest interval between two markings of all watches. Otherwise a user who causes lost
// events all the time could keep the watcher busy.
const markEvery = 2 * time.Second

// markAll marks all watches, because the lost events are unknown.
func (f *files) markAll() {
	for _, at := range f.folders.byPath {
		f.marks.markDirty(at)
	}
	for x := range f.watches {
		f.marks.markWoken(x)
		f.marks.markStale(x)
		x.written.Store(true)
	}
}
