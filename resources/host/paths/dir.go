// Package paths walks to what a path names, by descriptor: nobody leads a
// privileged process out of what is theirs.
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

// ErrUnsafe is a path that a user other than root and the running one could
// lead elsewhere: see OpenDir.
var ErrUnsafe = errors.New("unsafe path")

// Dir is an open directory: what is done below it is done in this very
// directory, whoever exchanges its path meanwhile. Make it with OpenDir, and
// close it.
type Dir struct {
	fd   int
	path string

	approval
}

// OpenDir opens the directory at path. It passes directories and links of root
// and the running user; from those of another user it goes on only to
// directories of that same user, and from a directory that everybody may write
// to, without the sticky bit, only to such ones. Anything else wraps ErrUnsafe,
// and names what leads elsewhere, its owner and the remedy.
func OpenDir(path string) (*Dir, error) { return (&Resolver{}).Dir(path) }

// Path returns the path that the directory was opened by.
func (d *Dir) Path() string { return d.path }

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Root returns the directory as a root for work on the tree below it: nothing
// leads out of that. The caller closes it; it stays valid when d is closed.
func (d *Dir) Root() (*os.Root, error) {
	return os.OpenRoot("/proc/self/fd/" + strconv.Itoa(d.fd))
}

// Readable opens the directory for reading; the caller closes it.
func (d *Dir) Readable() (*os.File, error) {
	fd, err := openFd(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.path, Err: err}
	}

	return os.NewFile(uintptr(fd), d.path), nil
}

// Sync makes changes to the entries of the directory durable.
func (d *Dir) Sync() error {
	err := fsync(d.fd)
	if err == unix.EBADF { // only open to be looked at
		f, err := d.Readable()
		if err != nil {
			return err
		}
		defer f.Close()
		return d.syncError(fsync(int(f.Fd())))
	}

	return d.syncError(err)
}

func fsync(fd int) error { return Retry(func() error { return unix.Fsync(fd) }) }

// syncError returns an error of fsync. File systems without that return EINVAL.
func (d *Dir) syncError(err error) error {
	if err == nil || err == unix.EINVAL {
		return nil
	}

	return &fs.PathError{Op: "fsync", Path: d.path, Err: err}
}

// Fd returns the descriptor of the directory, for system calls relative to it.
func (d *Dir) Fd() int { return d.fd }

// Stat looks at a name in the directory, without following a link.
func (d *Dir) Stat(name string, st *unix.Stat_t) error {
	err := Retry(func() error { return unix.Fstatat(d.fd, name, st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: filepath.Join(d.path, name), Err: err}
	}

	return nil
}

// Child opens the directory with a name in this one, whoever owns it. A link is
// ENOTDIR.
func (d *Dir) Child(name string) (*Dir, error) {
	return new(walk).open(d.fd, name, filepath.Join(d.path, name), unix.O_PATH|unix.O_NOFOLLOW)
}

// Check returns ErrUnsafe when a walk does not go on from the directory to one in it.
func (d *Dir) Check(child *Dir) error { return new(walk).check(d, child, false) }

// Party returns who may exchange what is in the directory.
func (d *Dir) Party() Party { return d.party }

// Keeps returns ErrUnsafe when an untrusted user may have moved what is at path in
// the directory, with attributes st, there: see Party. Its content must not be
// shown, nor its owner changed or its mode loosened.
func (d *Dir) Keeps(path string, st *unix.Stat_t) error { return keeps(d.party, path, st) }

// Refresh reads owner and mode of the directory again.
func (d *Dir) Refresh() error { return new(walk).stat(d) }

// CheckOwn returns ErrUnsafe when others than root and the running user could
// exchange what these have in the directory.
func (d *Dir) CheckOwn() error {
	switch d.party {
	case Trusted:
		return nil
	case Anybody:
		return fmt.Errorf("%w: %s: %s", ErrUnsafe, d.party.In(d.path), d.party.Remedy(d.path))
	default:
		return fmt.Errorf("%w: %s belongs to %s, who may exchange what is in it: give it to root, or use another directory", ErrUnsafe, d.path, OwnerName(d.uid))
	}
}

// TakesNames reports whether others than root, the running user and the owner of
// a file may give that another name in the directory.
func (d *Dir) TakesNames(owner uint32) bool {
	return Party(owner) != d.party && (d.party != Trusted || d.mode&unix.S_IWOTH != 0)
}
