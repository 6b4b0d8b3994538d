package files

import "os"

// Open is the function Open.
func (d *Disk) Open(path string) (*os.File, error) { return Open(path) }

// Open opens a regular file for reading; the caller closes it. Another kind of
// file wraps ErrNotRegular; a fifo is not waited for. Links are followed.
func Open(path string) (*os.File, error) {
	f, _, err := openRegular(path)

	return f, err
}
