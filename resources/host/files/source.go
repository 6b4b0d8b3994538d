package files

import "os"

// Open is the function Open.
func (d *Disk) Open(path string) (*os.File, error) { return Open(path) }

// Open opens a regular file for reading. Links are followed; anything
// but a regular file is an error that wraps ErrNotRegular, and is not waited
// for. The caller closes it.
func Open(path string) (*os.File, error) {
	f, _, err := openRegular(path)

	return f, err
}
