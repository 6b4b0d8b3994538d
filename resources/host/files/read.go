package files

import (
	"fmt"
	"io"
)

// Read is the function Read.
func (d *Disk) Read(path string, max int64) ([]byte, error) { return Read(path, max) }

// Read returns the content of a regular file of at most max bytes. A longer one
// wraps ErrTooLarge, another kind of file ErrNotRegular; a fifo is not waited
// for. Links are followed.
func Read(path string, max int64) ([]byte, error) {
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
