package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// linkAttributes sets those of a new symbolic link.
func (w *writer) linkAttributes(e entry) error {
	uid, gid, changes := w.owner(e)
	if !changes && e.modified.IsZero() {
		return nil
	}
	f, err := w.openLink(e.name)
	if err != nil {
		return err
	}
	defer f.Close()
	if changes {
		if err := paths.Retry(func() error { return unix.Fchownat(int(f.Fd()), "", uid, gid, unix.AT_EMPTY_PATH) }); err != nil {
			return &fs.PathError{Op: "chown", Path: e.name, Err: err}
		}
	}

	return setTime(f, e.modified)
}

// openLink opens a new symbolic link itself. The owner of the target may have put
// something else in its place.
func (w *writer) openLink(name string) (*os.File, error) {
	dir, err := w.root.Open(path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd := -1
	err = paths.Retry(func() (err error) {
		fd, err = unix.Openat(int(dir.Fd()), path.Base(name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = paths.Retry(func() error { return unix.Fstat(fd, &st) })
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFLNK || st.Nlink > 1) {
		err = fmt.Errorf("%w: somebody has replaced the link %s", ErrUnsafeEntry, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}
