package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// change calls f with the open parent directory of path and the name in it, and
// syncs the directory. A missing parent is ErrNoParent, the root directory
// ErrRefused.
func (d *Disk) change(path string, f func(dir *Dir, name string) error) error {
	at, err := d.changing(path)
	if err != nil {
		return err
	}
	defer at.dir.Close()
	sync, err := at.dir.readable()
	if err != nil {
		return err
	}
	defer sync.Close()
	if err := f(at.dir, at.name); err != nil {
		return err
	}

	return syncDir(sync)
}

// changing opens the parent directory of what is changed.
func (d *Disk) changing(path string) (*place, error) {
	path = filepath.Clean(path)
	if name := filepath.Base(path); name == "." || name == ".." || name == "/" {
		return nil, fmt.Errorf("%q: %w", path, ErrRefused)
	}
	at, err := d.approved.parent(path)
	if !IsAbsent(err) {
		return at, err
	}
	dir := filepath.Dir(path)
	if pathErr := new(fs.PathError); errors.As(err, &pathErr) && pathErr.Err == unix.ENOTDIR {
		dir = pathErr.Path
	}

	return nil, noParentError{dir: dir, err: err}
}

// noParentError is ErrNoParent with the reason of the system.
type noParentError struct {
	dir string
	err error
}

func (e noParentError) Error() string { return fmt.Sprintf("%s %s", e.dir, ErrNoParent) }

func (e noParentError) Unwrap() []error { return []error{ErrNoParent, e.err} }

// readable opens the directory for reading and syncing; the caller closes it.
func (d *Dir) readable() (*os.File, error) {
	return openAt(d.fd, ".", d.path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// syncDir makes changes to the entries of a directory durable. File systems
// without that return EINVAL.
func syncDir(dir *os.File) error {
	err := Retry(func() error { return unix.Fsync(int(dir.Fd())) })
	if err != nil && err != unix.EINVAL {
		return &fs.PathError{Op: "fsync", Path: dir.Name(), Err: err}
	}

	return nil
}

// sync makes changes to the entries of the directory durable.
func (d *Dir) sync() error {
	f, err := d.readable()
	if err != nil {
		return err
	}
	defer f.Close()

	return syncDir(f)
}

// SyncFileSystem makes durable all that was written, by anyone, to the file
// system of the directory at path.
func (d *Disk) SyncFileSystem(path string) error {
	dir, err := openReadable(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := Retry(func() error { return unix.Syncfs(int(dir.Fd())) }); err != nil {
		return &fs.PathError{Op: "syncfs", Path: path, Err: err}
	}

	return nil
}

// openReadable opens the directory at path for reading and syncing.
func openReadable(path string) (*os.File, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return dir.readable()
}
