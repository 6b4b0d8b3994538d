package host

import "os"

// Open opens a regular file for reading. Links are followed; anything but a
// regular file is an error that wraps ErrNotRegular. The caller closes it.
func (h *Host) Open(path string) (*os.File, error) {
	f, _, err := openRegular(path)

	return f, err
}
