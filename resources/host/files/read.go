package files

import (
	"fmt"
	"io"
	"os"

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

// ReadTrusted is Read of a file that decides what muster does. It returns
// paths.ErrUntrusted, with the remedy, for one that others than root, the running
// user and the author may change.
func ReadTrusted(path string, max int64, author paths.Author) ([]byte, error) {
	entry, err := look(&paths.Resolver{}, path, true)
	if err != nil {
		return nil, err
	}

	return entry.ReadTrusted(max, author)
}

// Read returns the content of the file of an entry like the function Read.
// Errors are also those of Open.
func (e Entry) Read(max int64) ([]byte, error) {
	if e.foreign != nil {
		return nil, e.foreign
	}
	f, _, _, err := e.descriptor()
	if err != nil {
		return nil, err
	}

	return e.read(f, max)
}

// ReadTrusted is Read with the errors of the function ReadTrusted.
func (e Entry) ReadTrusted(max int64, author paths.Author) ([]byte, error) {
	f, _, err := e.openTrusted(author)
	if err != nil {
		return nil, err
	}

	return e.read(f, max)
}

// read reads an open file and closes it.
func (e Entry) read(f io.ReadCloser, max int64) ([]byte, error) {
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

// ReadSecret is ReadTrusted of a file that only its owner may read. The error names the remedy.
func ReadSecret(path string, max int64) ([]byte, error) {
	text, err := ReadTrusted(path, max, paths.Author{})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may read it: chmod 600 %s", path, info.Mode().Perm(), path)
	}

	return text, nil
}
