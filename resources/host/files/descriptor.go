package files

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// descriptor is an open file for short use: an os.File needs two more system calls. The owner closes it.
type descriptor struct {
	fd   int
	path string
}

// Read implements io.Reader.
func (d descriptor) Read(p []byte) (n int, err error) {
	err = paths.Retry(func() (err error) {
		n, err = unix.Read(d.fd, p)
		return err
	})
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: d.path, Err: err}
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// position returns the number of bytes read.
func (d descriptor) position() int64 {
	at, _ := unix.Seek(d.fd, 0, io.SeekCurrent)

	return at
}

func (d descriptor) stat() (*unix.Stat_t, error) {
	var st unix.Stat_t
	if err := paths.Retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}

	return &st, nil
}

// Close closes the file.
func (d descriptor) Close() error { return unix.Close(d.fd) }

// file returns an os.File that the caller closes instead.
func (d descriptor) file() *os.File { return os.NewFile(uintptr(d.fd), d.path) }
