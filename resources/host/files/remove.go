package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Remove removes a file, link, special file or empty directory; a missing one
// is not an error. A directory with entries wraps ErrNotEmpty, the root
// directory ErrRefused.
func (d *Disk) Remove(path string) error {
	return removeIn(path, func(dir *os.File, name string) error {
		err := Retry(func() error { return unix.Unlinkat(int(dir.Fd()), name, 0) })
		if err == unix.EISDIR {
			err = Retry(func() error { return unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR) })
		}
		switch err {
		case nil, unix.ENOENT:
			return nil
		case unix.ENOTEMPTY, unix.EEXIST:
			return fmt.Errorf("%s: %w", path, ErrNotEmpty)
		default:
			return &fs.PathError{Op: "remove", Path: path, Err: err}
		}
	})
}

// RemoveAll removes path and everything below it without following links; a
// missing one is not an error. The root directory wraps ErrRefused.
func (d *Disk) RemoveAll(path string) error {
	return removeIn(path, func(*os.File, string) error { return os.RemoveAll(filepath.Clean(path)) })
}

// removeIn calls remove with the parent directory of path and syncs that.
// Without a parent there is nothing to remove.
func removeIn(path string, remove func(dir *os.File, name string) error) error {
	dir, name, err := openParent(path)
	switch {
	case errors.Is(err, ErrNoParent):
		return nil
	case err != nil:
		return err
	}
	defer dir.Close()
	if err := remove(dir, name); err != nil {
		return err
	}

	return syncDir(dir)
}

// IsEmpty reports whether a directory has no entries. Another kind of file is
// an error.
func (d *Disk) IsEmpty(path string) (bool, error) {
	dir, err := openDir(path)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	switch {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil:
		return false, err
	default:
		return false, nil
	}
}
