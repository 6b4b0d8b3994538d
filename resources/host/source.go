package host

import "os"

// Open is OpenRegular.
func (h *Host) Open(path string) (*os.File, error) { return OpenRegular(path) }

// OpenRegular opens a regular file for reading. Links are followed; anything
// but a regular file is an error that wraps ErrNotRegular, and is not waited
// for. The caller closes it.
func OpenRegular(path string) (*os.File, error) {
	f, _, err := openRegular(path)

	return f, err
}
