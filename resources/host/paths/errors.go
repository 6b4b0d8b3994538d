package paths

import (
	"errors"

	"golang.org/x/sys/unix"
)

// IsAbsent reports whether an error means that nothing is at a path, also
// because a parent is a file.
func IsAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

// Retry repeats a system call while signals interrupt it.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
