package host

import (
	"fmt"
	"io"
)

// Read is ReadRegular.
func (h *Host) Read(path string, max int64) ([]byte, error) { return ReadRegular(path, max) }

// ReadRegular gives the content of a regular file of at most max bytes; a
// longer one is an error that wraps ErrTooLarge. Links are followed; anything
// but a regular file is an error that wraps ErrNotRegular, and is not waited for.
func ReadRegular(path string, max int64) ([]byte, error) {
	f, st, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size > max {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d are read", path, ErrTooLarge, st.Size, max)
	}
	// It may grow while it is read, and files of /proc have no size.
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > max {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", path, ErrTooLarge, max)
	}

	return content, nil
}
