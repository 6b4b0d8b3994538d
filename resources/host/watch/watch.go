package watch

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// Watcher watches points of this machine. It is safe for concurrent use. Make it
// with New, and close it.
type Watcher struct {
	files *files
	units *units
}

// New returns a watcher. It takes nothing of the machine before the first Arm. The log gets
// what ends all watches; nil discards.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &Watcher{files: newFiles(log), units: newUnits(log, "/")}
}

// Watch is a point that is watched. Close it.
type Watch struct {
	point Point
	wake  func()
	close func()
	err   func() error

	// What follows belongs to files.
	folder *folder
	way    route
	tree   *tree
	gate   *gate
	// guards is the gate that the watch of a lock file is for.
	guards *gate
	// written is that the file was written to where it is.
	written atomic.Bool
	// stale marks one whose way has to be gone again, woken one to be woken.
	stale, woken bool
	// lost is why its path is not watched, failed why the point is not.
	lost, failed error
}

// Arm watches a point: whatever changes after it has returned calls wake, once or
// several times. wake is called from any goroutine, at the same time as the wakes of
// other watches; it must return soon, and may call Arm and Close of watches. It says only
// that somebody should look again. One that was under way may still return after the
// watch was closed.
//
// Errors are ErrLimit, ErrNone and ErrClosed: whoever wants to know has to look at
// intervals.
func (w *Watcher) Arm(p Point, wake func()) (*Watch, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var x *Watch
	var err error
	if p.Kind == Unit {
		x, err = w.units.arm(p, wake)
	} else {
		p.Name = filepath.Clean(p.Name)
		x, err = w.files.arm(p, wake)
	}
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", p.Name, err)
	}

	return x, nil
}

// Close ends the watch. It may be called more than once.
func (x *Watch) Close() { x.close() }

// Err returns why the point is not watched at the moment, although it was armed: ErrLimit,
// ErrNone or ErrClosed. A call of wake tells when that changes. Meanwhile whoever wants to
// know has to look at intervals.
func (x *Watch) Err() error { return x.err() }

// Written reports whether the file at a path may have been written to where it is, and
// not only have been replaced or got other attributes, since it was asked last. It is set before wake is
// called.
func (x *Watch) Written() bool { return x.written.Swap(false) }

// Close closes all watches and waits until no wake is under way. wake must not call it.
func (w *Watcher) Close() {
	w.files.close()
	w.units.close()
}

// Stats are figures of a watcher.
type Stats struct {
	// Points are those that are armed.
	Points int
	// Directories are the watches of the kernel, one a directory, all of one
	// descriptor.
	Directories int
	// Fallbacks are the points that are not watched at the moment, by name.
	Fallbacks []Fallback
}

// Fallback is a point that is not watched at the moment, and why: the error is that
// of Watch.Err.
type Fallback struct {
	Point Point
	Err   error
}

// Stats returns figures of what is watched now.
func (w *Watcher) Stats() Stats {
	a, b := w.files.stats(), w.units.stats()
	out := Stats{Points: a.Points + b.Points, Directories: a.Directories, Fallbacks: append(a.Fallbacks, b.Fallbacks...)}
	slices.SortFunc(out.Fallbacks, func(a, b Fallback) int { return strings.Compare(a.Point.String(), b.Point.String()) })

	return out
}
