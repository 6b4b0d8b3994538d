package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// change calls f with the open parent directory of path and the name in it, and
// syncs the directory. A missing parent is ErrNoParent, the root directory
// ErrRefused.
func (d *Disk) change(path string, f func(dir *paths.Dir, name string) error) error {
	at, err := changing(path, d.paths.ReadableParent)
	if err != nil {
		return err
	}
	defer at.Dir.Close()
	if err := f(at.Dir, at.Name); err != nil {
		return err
	}
	d.Units.NoteChange(filepath.Join(at.Dir.Path(), at.Name))

	return at.Dir.Sync()
}

// changing opens the parent directory of the file to change.
func changing(path string, parent func(string) (*paths.Place, error)) (*paths.Place, error) {
	path = filepath.Clean(path)
	if name := filepath.Base(path); name == "." || name == ".." || name == "/" {
		return nil, fmt.Errorf("%q: %w", path, ErrRefused)
	}
	at, err := parent(path)
	if !paths.IsAbsent(err) {
		return at, err
	}
	dir := filepath.Dir(path)
	if pathErr := new(fs.PathError); errors.As(err, &pathErr) && pathErr.Err == unix.ENOTDIR {
		dir = pathErr.Path
	}

	return nil, noParentError{dir: dir, err: err}
}

// noParentError returns ErrNoParent with the system's error.
type noParentError struct {
	dir string
	err error
}

func (e noParentError) Error() string { return fmt.Sprintf("%s %s", e.dir, ErrNoParent) }

func (e noParentError) Unwrap() []error { return []error{ErrNoParent, e.err} }
