// Package watch reports possible changes of this machine: of paths by inotify, and of units by the signals of
// systemd. It only reports that the caller should observe again, never the change itself.
package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/units"
)

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

// check returns an error for a point that cannot be watched.
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
