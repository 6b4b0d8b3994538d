package paths

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
