package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openAt opens name relative to a directory descriptor, or to the working
// directory with unix.AT_FDCWD. Errors name full.
func openAt(dir int, name, full string, flags int, mode uint32) (*os.File, error) {
	fd := -1
	err := Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: full, Err: err}
	}

	return os.NewFile(uintptr(fd), full), nil
}

// openDir opens a directory, following links.
func openDir(path string) (*os.File, error) {
	return openAt(unix.AT_FDCWD, path, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// openRegular opens the regular file at path for reading. A fifo is refused,
// not waited for.
func openRegular(path string) (*os.File, *unix.Stat_t, error) {
	f, err := openAt(unix.AT_FDCWD, path, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := fstat(f)
	if err == nil && kindOf(st) != File {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}

	return f, st, nil
}

func fstat(f *os.File) (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Fstat(int(f.Fd()), &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}

	return &st, nil
}

// openParent opens the parent directory of path and returns it with the last
// element. A missing parent is ErrNoParent.
func openParent(path string) (*os.File, string, error) {
	path = filepath.Clean(path)
	name := filepath.Base(path)
	if name == "." || name == ".." || name == "/" {
		return nil, "", fmt.Errorf("%q: %w", path, ErrRefused)
	}
	parent := filepath.Dir(path)
	dir, err := openDir(parent)
	switch {
	case err == nil:
		return dir, name, nil
	case IsAbsent(err):
		return nil, "", fmt.Errorf("%s %w", parent, ErrNoParent)
	default:
		return nil, "", err
	}
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

// SyncFileSystem makes durable all that was written, by anyone, to the file
// system of the directory at path.
func (d *Disk) SyncFileSystem(path string) error {
	dir, err := openDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := Retry(func() error { return unix.Syncfs(int(dir.Fd())) }); err != nil {
		return &fs.PathError{Op: "syncfs", Path: path, Err: err}
	}

	return nil
}
