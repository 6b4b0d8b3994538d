// Package paths resolves paths by descriptor, so that no user can redirect a privileged process.
package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrUnsafe means that a user other than root and the running user could redirect the path: see OpenDir.
var ErrUnsafe = errors.New("unsafe path")

// Dir is an open directory. Operations below it apply to this directory, even if its path changes. Create it
// with OpenDir and close it.
type Dir struct {
	fd   int
	path string

	approval
}

// OpenDir opens the directory at path. It follows directories and links of root and the running user. From a
// directory of another user it continues only to directories of the same user. From a directory that all
// users may write to, without the sticky bit, it continues only to such directories. Otherwise the error
// wraps ErrUnsafe and names the redirecting directory or link, its owner and the remedy.
func OpenDir(path string) (*Dir, error) { return (&Resolver{}).Dir(path) }

// Path returns the path that OpenDir received.
func (d *Dir) Path() string { return d.path }

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Root returns the directory as an os.Root, which no path leaves. The caller closes it. It stays valid after
// d is closed.
func (d *Dir) Root() (*os.Root, error) {
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(d.fd))
}

// Readable opens the directory for reading; the caller closes it.
func (d *Dir) Readable() (*os.File, error) {
	fd, err := OpenAt(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}

	return os.NewFile(uintptr(fd), d.path), nil
}

// Sync makes changes to the entries of the directory durable, if the file system supports it.
func (d *Dir) Sync() error {
	fd := d.fd
	sync := func() error { return unix.Fsync(fd) }
	err := Retry(sync)
	if err == unix.EBADF { // open without read permission
		f, openErr := d.Readable()
		if openErr != nil {
			return openErr
		}
		defer f.Close()
		fd = int(f.Fd())
		err = Retry(sync)
	}
	if err == nil || err == unix.EINVAL {
		return nil
	}

	return &fs.PathError{Op: "fsync", Path: d.path, Err: err}
}

// MayEnter returns an error if the file system user of this thread may not enter the directory.
func (d *Dir) MayEnter() error {
	fd, err := OpenAt(d.fd, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return &fs.PathError{Op: "enter", Path: d.path, Err: err}
	}

	return unix.Close(fd)
}

// Fd returns the descriptor of the directory, for system calls relative to it.
func (d *Dir) Fd() int { return d.fd }

// Stat returns the attributes of a name in the directory without following a link.
func (d *Dir) Stat(name string, st *unix.Stat_t) error {
	err := Retry(func() error { return unix.Fstatat(d.fd, name, st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: filepath.Join(d.path, name), Err: err}
	}

	return nil
}

// Child opens a subdirectory of any owner. A link is ENOTDIR.
func (d *Dir) Child(name string) (*Dir, error) {
	return new(walk).open(d.fd, name, filepath.Join(d.path, name), unix.O_PATH|unix.O_NOFOLLOW)
}

// Check returns ErrUnsafe if a walk does not continue from the directory to the subdirectory.
func (d *Dir) Check(child *Dir) error { return new(walk).check(d, child, false) }

// Party returns the party that may replace files in the directory.
func (d *Dir) Party() Party { return d.party }

// Keeps returns ErrUnsafe if an untrusted user may have moved the file at path, with attributes st, into the
// directory: see Party. Do not show its content, change its owner or extend its mode.
func (d *Dir) Keeps(path string, st *unix.Stat_t) error { return keeps(d.party, path, st) }

// Refresh reads owner and mode of the directory again.
func (d *Dir) Refresh() error { return new(walk).stat(d) }

// CheckOwn returns ErrUnsafe if users other than root and the running user could replace files of these two
// in the directory.
func (d *Dir) CheckOwn() error {
	switch d.party {
	case Trusted:
		return nil
	case Anybody:
		return fmt.Errorf("%w: %s: %s", ErrUnsafe, d.party.In(d.path), d.party.Remedy(d.path))
	default:
		return fmt.Errorf("%w: %s belongs to %s, who may replace files in it: give it to root, or use another directory", ErrUnsafe, d.path, OwnerName(d.uid))
	}
}

// TakesNames reports whether users other than root, the running user and the owner of a file may give the
// file another name in the directory.
func (d *Dir) TakesNames(owner uint32) bool {
	return Party(owner) != d.party && (d.party != Trusted || d.mode&unix.S_IWOTH != 0)
}

// IsAbsent reports whether an error means that no file exists at a path, also because a parent is a file.
func IsAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// foreignError is an ErrUnsafe about a file that may have been moved into a directory. It is comparable.
type foreignError struct {
	path string
	uid  uint32
	in   Party
}

// keeps returns a foreignError for a file that may have been moved into a directory.
func keeps(in Party, path string, st *unix.Stat_t) error {
	if in.Keeps(st.Mode, st.Uid) {
		return nil
	}

	return foreignError{path: path, uid: st.Uid, in: in}
}

func (e foreignError) Error() string {
	dir := filepath.Dir(e.path)
	remedy := e.in.Remedy(dir)
	if e.in >= 0 {
		owner := OwnerName(uint32(e.in))
		remedy = "give it to " + owner + ", or replace it"
	}

	return fmt.Sprintf("%s: %s belongs to %s, but %s: %s", ErrUnsafe, e.path, OwnerName(e.uid), e.in.In(dir), remedy)
}

func (foreignError) Unwrap() error { return ErrUnsafe }

// Retry repeats a system call while signals interrupt it.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
