package paths

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// IsAbsent reports whether an error means that nothing is at a path, also
// because a parent is a file.
func IsAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// foreignError is ErrUnsafe for what is in a directory of a user to whom it does
// not belong: they may have moved it there. It can be compared.
type foreignError struct {
	path string
	uid  uint32
	in   party
}

func (e foreignError) Error() string {
	owner := OwnerName(uint32(e.in))

	return fmt.Sprintf("%s: %s belongs to %s, but %s to %s: give it to %s, or replace it", ErrUnsafe, e.path, OwnerName(e.uid), filepath.Dir(e.path), owner, owner)
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
