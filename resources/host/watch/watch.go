// Package watch reports possible changes of this machine: of paths by inotify, and of units by the signals of
// systemd. It only reports that the caller should observe again, never the change itself.
package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/units"
)

// Watcher watches points of this machine. It is safe for concurrent use. Create it with New and close it.
type Watcher struct {
	files *files
	units *units.Watcher
}

// New returns a watcher. It uses no kernel resources before the first Arm. It logs errors that end all
// watches; nil discards them.
func New(log *slog.Logger) *Watcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}

	return &Watcher{files: newFiles(log), units: units.NewWatcher(log, "/")}
}

// Watch is a watched point. Close it.
type Watch interface {
	// Close ends the watch. It may be called more than once.
	Close()
	// Err returns the reason why the armed point is not watched at the moment: ErrLimit, ErrNone or
	// ErrClosed. The watcher calls wake when this changes. Until then the caller must poll.
	Err() error
	// Written reports whether the file at a path may have been written in place since the last call, and not
	// only replaced or changed in its attributes. It is set before wake is called.
	Written() bool
}

// Arm watches a point. Each change after Arm returns causes at least one call of wake. wake is called from
// any goroutine, concurrently with other wakes. It must return soon. It may call Arm and Close of watches. A
// wake only means that the caller should observe again. A running wake may still return after the watch is
// closed. Errors are ErrLimit, ErrNone and ErrClosed, in a PointError: the caller must poll.
func (w *Watcher) Arm(p Point, wake func()) (Watch, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	x, err := w.arm(p, wake)
	if err != nil {
		return nil, &PointError{p, err} // not an interface that holds a nil pointer
	}

	return x, nil
}

func (w *Watcher) arm(p Point, wake func()) (Watch, error) {
	if p.Kind == Unit {
		return w.units.Arm(p.Name, wake)
	}
	p.Name = filepath.Clean(p.Name)

	return w.files.arm(p, wake)
}

// Close closes all watches and waits for running wakes. wake must not call it.
func (w *Watcher) Close() {
	w.files.close()
	w.units.Close()
}

// Kind is the kind of a point.
type Kind string

const (
	// Path is an absolute path. It changes when the file appears, disappears, is replaced, or gets other
	// content, another owner or mode. It also changes when a directory or link of its path changes, when a
	// file system is mounted or unmounted over it or above it, and, for a link, when its target changes.
	// Changes through another name of the same file are not reported. Changes through a memory mapping are
	// reported when the file is closed.
	Path Kind = "path"
	// Tree is a Path with all files below it, if it is a directory. Links in the tree are not followed.
	Tree Kind = "tree"
	// Unit is the full name of a unit of systemd.
	Unit Kind = "unit"
)

// Point is a watchable part of the machine. Equal points watch the same part.
type Point struct {
	Kind Kind
	// Name is an absolute path, or the name of a unit.
	Name string
	// After is the lock file of a program that makes many changes, such as a package manager. Its changes are
	// reported when no process holds a write lock (fcntl) on the file, or after ten minutes. It is empty for
	// none. Units have none.
	After string
}

// String returns kind and name, for logs.
func (p Point) String() string { return string(p.Kind) + " " + p.Name }

var (
	// ErrLimit means that a limit of the kernel or of this package is reached. The caller must poll.
	ErrLimit = errors.New("limit of watches reached")
	// ErrNone means that the point cannot be watched on this machine, for example a unit without systemd.
	ErrNone = units.ErrNone
	// ErrClosed means that the watcher is closed.
	ErrClosed = units.ErrClosed
)

// PointError is the reason why a point is not watched. Err is the same value for all points with this reason.
type PointError struct {
	Point Point
	Err   error
}

// Error names the point and the reason.
func (e *PointError) Error() string { return "watching " + e.Point.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *PointError) Unwrap() error { return e.Err }

func (p Point) check() error {
	for _, path := range []string{p.Name, p.After} {
		if strings.ContainsRune(path, 0) {
			return fmt.Errorf("%w: %q", ErrNone, path)
		}
	}
	switch {
	case p.Kind == Unit && p.Name != "" && p.After == "":
		return nil
	case (p.Kind == Path || p.Kind == Tree) && filepath.IsAbs(p.Name) && (p.After == "" || filepath.IsAbs(p.After)):
		return nil
	default:
		return fmt.Errorf("%w: %q", ErrNone, p)
	}
}
