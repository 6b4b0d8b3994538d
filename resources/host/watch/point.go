// Package watch tells when something of this machine may have changed: paths by
// inotify, units by the signals of systemd. It never says what changed, only that
// somebody should look again.
package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/units"
)

// Kind is what a point is.
type Kind string

const (
	// Path is an absolute path. It changes when what is there appears, goes, is
	// replaced, or gets another content, owner or mode; when a directory or link on
	// the way to it does; and, where it is a link, when what that leads to does. What
	// is done by another name of the same file, or by a mapping of it into memory before
	// that is closed, is not seen. It changes, too, when something is mounted over it or above
	// it, or no longer is.
	Path Kind = "path"
	// Tree is a Path, and all below it where it is a directory. Links in it are not
	// followed.
	Tree Kind = "tree"
	// Unit is a unit of systemd, by its full name.
	Unit Kind = "unit"
)

// Point is something of the machine that can be watched. Points can be compared:
// equal ones watch the same.
type Point struct {
	Kind Kind
	// Name is an absolute path, or the name of a unit.
	Name string
	// After is the lock file of a program that makes many changes, such as a package
	// manager: they count once nobody has locked it for writing by fcntl, or after ten
	// minutes. Empty for none; units have none.
	After string
}

// String is kind and name, for logs.
func (p Point) String() string { return string(p.Kind) + " " + p.Name }

var (
	// ErrLimit is a limit of the kernel or of this package: nothing more can be
	// watched, and whoever wants to know has to look at intervals.
	ErrLimit = errors.New("limit of watches reached")
	// ErrNone is something that cannot be watched on this machine, such as a unit where no
	// systemd can be reached.
	ErrNone = units.ErrNone
	// ErrClosed is a watcher that was closed.
	ErrClosed = units.ErrClosed
)

// PointError is why a point is not watched. Err is the same for all points with that reason.
type PointError struct {
	Point Point
	Err   error
}

// Error names the point and the reason.
func (e *PointError) Error() string { return "watching " + e.Point.Name + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *PointError) Unwrap() error { return e.Err }

// check returns an error for a point that nobody can watch.
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
