package files

import (
	"fmt"
	"io"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Read returns the content of a regular file of at most max bytes. A longer one
// wraps ErrTooLarge, another kind of file ErrNotRegular; a fifo is not waited
// for. Links are followed.
func Read(path string, max int64) ([]byte, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, err
	}

	return entry.Read(max)
}

// Read returns the content of the file of an entry like the function Read.
// Errors are also those of Open.
func (e Entry) Read(max int64) ([]byte, error) {
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if e.Size > max {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d are read", e.Path, ErrTooLarge, e.Size, max)
	}
	// It may grow while it is read, and files of /proc have no size.
	content, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > max {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", e.Path, ErrTooLarge, max)
	}

	return content, nil
}
