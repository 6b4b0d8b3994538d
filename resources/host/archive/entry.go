package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// kind is what an entry becomes.
type kind int

const (
	// nothing is an entry that only describes others.
	nothing kind = iota
	regularFile
	directory
	symbolicLink
	hardLink
)

// entry is one of an archive of any format.
type entry struct {
	name string
	kind kind
	// size is the announced length of a file, -1 when unknown.
	size int64
	// mode holds permissions and special bits; asked is false when the archive has
	// none, so that the umask applies in any case.
	mode  fs.FileMode
	asked bool
	// target is that of a link.
	target   string
	modified time.Time
	// owner is nil when the archive names none.
	owner *Owner
	// sparse files have holes.
	sparse bool
}

// visitor gets an entry and its content.
type visitor func(entry, io.Reader) error

// modeOf returns the permissions and special bits of a Unix mode.
func modeOf(unixMode uint32) fs.FileMode {
	mode := fs.FileMode(unixMode & 0o777)
	for bit, set := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if unixMode&bit != 0 {
			mode |= set
		}
	}

	return mode
}

// sourceReader separates errors of the source from errors of the archive, and
// ends with its context. It lives for one call.
type sourceReader struct {
	ctx context.Context
	r   io.Reader
	// failed is the first of these errors.
	failed error
}

func (s *sourceReader) Read(b []byte) (n int, err error) {
	if s.failed == nil {
		s.failed = context.Cause(s.ctx)
	}
	if s.failed == nil {
		if n, err = s.r.Read(b); err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		s.failed = err
	}

	return n, sourceError{s.failed}
}

// sourceError has no Unwrap, so that its cause is not taken for the archive's.
type sourceError struct{ error }

// archiveError wraps an error of reading an archive.
func archiveError(err error) error {
	var source sourceError
	if errors.As(err, &source) {
		return source.error
	}

	return fmt.Errorf("%w: %w", ErrNotArchive, err)
}

// contentReader is the content of an entry, with the errors of an archive.
type contentReader struct{ r io.Reader }

func (c contentReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = archiveError(err)
	}

	return n, err
}

// readBuffer is the size of a read.
const readBuffer = 128 << 10

func buffered(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, readBuffer) }
