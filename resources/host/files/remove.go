package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Remove removes a file, link, special file or empty directory; a missing one
// is not an error. A directory with entries wraps ErrNotEmpty, the root
// directory ErrRefused.
func (d *Disk) Remove(path string) error {
	return d.remove(path, func(dir *paths.Dir, name string) error {
		switch err := paths.Unlink(dir.Fd(), name); err {
		case nil:
			return nil
		case unix.ENOTEMPTY, unix.EEXIST:
			return fmt.Errorf("%s: %w", path, ErrNotEmpty)
		default:
			return busy(dir, name, &fs.PathError{Op: "remove", Path: path, Err: err})
		}
	})
}

// RemoveAll removes path and everything below it without following links; a
// missing path is not an error. If path or anything below it is a mount point, RemoveAll
// removes nothing and returns paths.ErrMounted. Entries that cannot be removed stay, and the
// first error is returned. RemoveAll stops when ctx ends. The root directory is ErrRefused.
func (d *Disk) RemoveAll(ctx context.Context, path string) error {
	return d.remove(path, func(dir *paths.Dir, name string) error {
		if err := paths.RemoveTreeIn(ctx, dir, name); err != nil {
			return fmt.Errorf("could not remove %s: %w", path, err)
		}

		return nil
	})
}

// MayReplace returns paths.ErrMounted if path or anything below it is a mount point, so that
// path can be neither replaced nor removed.
func (d *Disk) MayReplace(path string) error {
	at, err := changing(path, d.paths.Parent)
	switch {
	case errors.Is(err, ErrNoParent):
		return nil
	case err != nil:
		return err
	}
	defer at.Dir.Close()

	return paths.RefuseMount(at.Dir.Fd(), at.Name)
}

// MountsBelow returns the mount points below the directory at path, without path itself.
func (d *Disk) MountsBelow(path string) ([]paths.MountPoint, error) {
	dir, err := d.paths.Dir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return paths.MountsBelow(dir.Fd(), ".")
}

// busy returns paths.ErrMounted if a mount caused the error of a system call, else the error.
func busy(dir *paths.Dir, name string, err error) error {
	if errors.Is(err, unix.EBUSY) {
		if mounted := paths.RefuseMount(dir.Fd(), name); mounted != nil {
			return mounted
		}
	}

	return err
}

// remove is change; without a parent there is nothing to remove.
func (d *Disk) remove(path string, f func(dir *paths.Dir, name string) error) error {
	if err := d.change(path, f); !errors.Is(err, ErrNoParent) {
		return err
	}

	return nil
}

// IsEmpty reports whether a directory has no entries. Another kind of file is
// an error.
func (d *Disk) IsEmpty(path string) (bool, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return false, err
	}
	defer dir.Close()

	return isEmpty(dir)
}

// Names returns the sorted names of the entries of a directory.
func (d *Disk) Names(path string) ([]string, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Readable()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)

	return names, err
}

func isEmpty(dir *paths.Dir) (bool, error) {
	f, err := dir.Readable()
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err = f.Readdirnames(1); errors.Is(err, io.EOF) {
		return true, nil
	}

	return false, err
}
