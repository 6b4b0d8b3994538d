package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLink is the longest target of a link.
const maxLink = 4096

// zip reads every entry to its end: the sizes in the directory prove nothing.
// Links come first, because unzip makes them last.
func (i *inspection) zip(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	source := &sourceReaderAt{ctx: ctx, r: f, left: maxDirectory}
	archive, err := zip.NewReader(source, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return archiveError(err)
	}
	source.left = -1
	if err := checkZip(source, info.Size(), archive.File); err != nil {
		return err
	}
	for _, links := range []bool{true, false} {
		for _, entry := range archive.File {
			if kindOfEntry(entry) == unix.S_IFLNK != links {
				continue
			}
			if err := i.zipEntry(entry, links); err != nil {
				return fmt.Errorf("%q: %w", entry.Name, err)
			}
		}
	}

	return nil
}

// sourceReaderAt is sourceReader for a zip. It reads at most left bytes, unless
// that is negative.
type sourceReaderAt struct {
	ctx  context.Context
	r    io.ReaderAt
	left int64
}

// ReadAt counts the bytes it reads.
func (s *sourceReaderAt) ReadAt(b []byte, at int64) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, sourceError{err}
	}
	n, err := s.r.ReadAt(b, at)
	if s.left >= 0 {
		if s.left -= int64(n); s.left < 0 {
			return 0, sourceError{ErrTooManyEntries}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = sourceError{err}
	}

	return n, err
}

// kindOfEntry returns the kind that unzip takes from the attributes, whatever
// system they name; zero is a file or directory.
func kindOfEntry(entry *zip.File) uint32 { return entry.ExternalAttrs >> 16 & unix.S_IFMT }

func (i *inspection) zipEntry(entry *zip.File, link bool) error {
	if err := i.count(); err != nil {
		return err
	}
	var content []byte
	err := i.content(entry, func(b []byte) error {
		if !link {
			return i.bytes(int64(len(b)))
		}
		if content = append(content, b...); len(content) > maxLink {
			return fmt.Errorf("%w: the target of the link is too long", ErrUnsafeEntry)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// To unzip a \ separates directories in names from Windows, and is a character
	// elsewhere.
	names := []string{strings.ReplaceAll(entry.Name, `\`, "/"), entry.Name}
	for _, name := range slices.Compact(names) {
		switch kind := kindOfEntry(entry); {
		case link:
			err = i.link(name, string(content))
		case strings.HasSuffix(name, "/") || kind == unix.S_IFDIR:
			err = i.directory(name)
		case kind == 0 || kind == unix.S_IFREG:
			err = i.file(name)
		default:
			err = ErrEntryType
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// content reads an entry to its end, which checks its checksum.
func (i *inspection) content(entry *zip.File, each func([]byte) error) error {
	r, err := entry.Open()
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		return fmt.Errorf("%w: it is compressed by method %d, only deflate is read", ErrEntryType, entry.Method)
	case err != nil:
		return archiveError(err)
	}
	defer r.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		if refused := each(buffer[:n]); refused != nil {
			return refused
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return archiveError(err)
		}
	}
}
