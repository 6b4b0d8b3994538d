package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// files watches paths and trees. One goroutine reads the events; who arms and closes
// works under the same lock.
type files struct {
	log    *slog.Logger
	reader sync.WaitGroup

	mu      sync.Mutex
	inotify *inotify
	closed  bool
	folders map[string]*folder
	gates   map[string]*gate
	// watches are those of points, and those of lock files.
	watches map[*Watch]struct{}
	// dirty, stale and woken are what the events of one reading came to, as the
	// flags of the same names tell.
	dirty []*folder
	stale []*Watch
	woken []*Watch
	// trees are those to be gone through again, failed the watches with an error.
	trees, failed map[*Watch]struct{}
	// through are the wakes of those that waited for a lock.
	through []func()
	// retry is when to try again what failed.
	retry time.Time
}

func newFiles(log *slog.Logger) *files {
	return &files{
		log: log, folders: map[string]*folder{}, gates: map[string]*gate{}, watches: map[*Watch]struct{}{},
		trees: map[*Watch]struct{}{}, failed: map[*Watch]struct{}{},
	}
}

// start opens the descriptor and reads it.
func (f *files) start() (err error) {
	if f.closed {
		return ErrClosed
	}
	if f.inotify != nil {
		return nil
	}
	if f.inotify, err = openInotify(); err == nil {
		f.reader.Go(f.read)
	}

	return err
}

func (f *files) arm(p Point, wake func()) (*Watch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.start(); err != nil {
		return nil, err
	}
	x := f.newWatch(p, wake)
	err := f.follow(x)
	if err == nil && p.Kind == Tree {
		x.tree = &tree{}
		err = f.scan(x)
	}
	if err == nil && p.After != "" {
		x.gate, err = f.enter(x)
	}
	if err != nil {
		f.remove(x)
		return nil, err
	}

	return x, nil
}

func (f *files) newWatch(p Point, wake func()) *Watch {
	x := &Watch{point: p, wake: wake}
	x.way.watch = x
	x.close = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.remove(x)
	}
	x.err = func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return x.failed
	}
	f.watches[x] = struct{}{}

	return x
}

// remove ends a watch, and releases all that is only its own.
func (f *files) remove(x *Watch) {
	if _, armed := f.watches[x]; !armed {
		return
	}
	delete(f.watches, x)
	delete(f.failed, x)
	delete(f.trees, x)
	if f.closed {
		return
	}
	f.prune(x)
	x.way.take(f.inotify, nil)
	f.leave(x)
	f.exit(x)
}

func (f *files) close() {
	f.mu.Lock()
	f.closed = true
	for x := range f.watches {
		x.failed = ErrClosed
	}
	if f.inotify != nil {
		_ = f.inotify.file.Close()
	}
	f.mu.Unlock()
	f.reader.Wait()
}

func (f *files) stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out Stats
	for x := range f.watches {
		if x.guards == nil {
			out.Points++
		}
	}
	if f.inotify != nil && !f.closed {
		out.Directories = len(f.inotify.dirs)
	}
	for x := range f.failed {
		out.Fallbacks = append(out.Fallbacks, Fallback{x.point, x.failed})
	}

	return out
}

// bufferSize holds some thousand events with short names.
const bufferSize = 64 << 10

// read reads events until the descriptor is closed.
func (f *files) read() {
	file, buffer := f.inotify.file, make([]byte, bufferSize)
	for {
		n, err := file.Read(buffer)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			n = 0
		case err != nil:
			f.log.Error("watches of files failed", "error", err)
			f.fail(err)
			return
		}
		wakes, again := f.handle(buffer[:n])
		for _, wake := range wakes {
			wake()
		}
		_ = file.SetReadDeadline(again)
	}
}

// fail gives up: all watches have the error, and are woken to say so.
func (f *files) fail(err error) {
	f.mu.Lock()
	f.closed = true
	_ = f.inotify.file.Close()
	var wakes []func()
	for x := range f.watches {
		x.failed = fmt.Errorf("%w: %w", ErrNone, err)
		if x.guards == nil {
			f.failed[x] = struct{}{}
			wakes = append(wakes, x.wake)
		}
	}
	f.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// handle takes in events. It returns whom to wake, and when to call it again at the
// latest, zero for after the next event.
func (f *files) handle(buffer []byte) ([]func(), time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, time.Time{}
	}
	for len(buffer) > 0 {
		e, rest, err := nextEvent(buffer)
		if err != nil {
			f.log.Error("watches of files failed", "error", err)
			f.all()
			break
		}
		buffer = rest
		f.note(e)
	}

	return f.settle(time.Now())
}

// note finds who is concerned by an event. That of a name that nobody wants costs
// no more than the look.
func (f *files) note(e event) {
	if e.has(unix.IN_Q_OVERFLOW) {
		f.all()
		return
	}
	d := f.inotify.dirs[e.wd]
	if d == nil {
		return
	}
	if e.has(unix.IN_IGNORED | unix.IN_UNMOUNT) {
		f.gone(d)
		return
	}
	for _, r := range d.hops[string(e.name)] {
		f.concern(r, e)
	}
	for _, x := range d.trees {
		f.wake(x)
		if e.has(entries) && e.has(unix.IN_ISDIR) {
			f.trees[x] = struct{}{}
		}
	}
}

// concern marks who owns a route.
func (f *files) concern(r *route, e event) {
	if r.folder != nil {
		f.soil(r.folder)
		return
	}
	f.wake(r.watch)
	if e.has(unix.IN_MODIFY | unix.IN_CLOSE_WRITE) {
		r.watch.written.Store(true)
	}
	// An attribute on the way of a link decides whether it can be followed.
	if e.has(entries) || len(r.hops) > 1 {
		f.stain(r.watch)
	}
}

// gone marks all that a directory was part of, which is watched no more.
func (f *files) gone(d *dir) {
	delete(f.inotify.dirs, d.wd)
	// The directory above says nothing when a file system is unmounted.
	for _, at := range f.folders {
		if at.end == d {
			f.soil(at)
		}
	}
	for _, routes := range d.hops {
		for _, r := range routes {
			f.concern(r, event{mask: unix.IN_DELETE})
		}
	}
	for _, x := range d.trees {
		f.wake(x)
		f.trees[x] = struct{}{}
	}
}

// all marks everything: nobody knows what was missed.
func (f *files) all() {
	for _, at := range f.folders {
		f.soil(at)
	}
	for x := range f.watches {
		f.wake(x)
		f.stain(x)
		x.written.Store(true)
	}
}

func (f *files) soil(at *folder) {
	if !at.dirty {
		at.dirty = true
		f.dirty = append(f.dirty, at)
	}
}

// stain has the way of a watch gone again, and its tree.
func (f *files) stain(x *Watch) {
	if !x.stale {
		x.stale = true
		f.stale = append(f.stale, x)
	}
	if x.tree != nil {
		f.trees[x] = struct{}{}
	}
}

func (f *files) wake(x *Watch) {
	if !x.woken {
		x.woken = true
		f.woken = append(f.woken, x)
	}
}
