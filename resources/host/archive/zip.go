package archive

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxDirectory is the largest directory of a zip, which is kept in memory.
	maxDirectory = 64 << 20
	// maxLink is the longest target of a link.
	maxLink = 4096
	// encrypted flags an entry that needs a password.
	encrypted = 1
	// unicodePath is the extra field with another name, unixOwner that with an owner.
	unicodePath, unixOwner = 0x7075, 0x7875
)

// eachZip visits the entries of a zip, links first or last. To check them, first:
// no entry may go through one, wherever in the archive it is. To make them, last.
func eachZip(source *sourceReaderAt, size int64, linksFirst bool, visit visitor) error {
	// A zip may begin with anything, such as another archive.
	var start [4]byte
	if _, err := source.ReadAt(start[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return archiveError(err)
	}
	archive, err := zip.NewReader(source, size)
	switch {
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return archiveError(err)
	case string(start[:]) != "PK\x03\x04" && string(start[:]) != "PK\x05\x06":
		return fmt.Errorf("%w: something precedes the zip", ErrNotArchive)
	}
	source.left = -1
	for _, links := range []bool{linksFirst, !linksFirst} {
		for _, file := range archive.File {
			if fileType(file) == unix.S_IFLNK != links {
				continue
			}
			if err := visitZip(file, visit); err != nil {
				return fmt.Errorf("%q: %w", file.Name, err)
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

// fileType returns the file type in the attributes, as unzip does whatever
// system they name; zero is a file or directory.
func fileType(file *zip.File) uint32 { return file.ExternalAttrs >> 16 & unix.S_IFMT }

func visitZip(file *zip.File, visit visitor) error {
	e, err := zipEntry(file)
	if err != nil {
		return err
	}
	r, err := file.Open()
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		return fmt.Errorf("%w: it is compressed by method %d, only deflate is read", ErrEntryType, file.Method)
	case err != nil:
		return archiveError(err)
	}
	defer r.Close()
	content := contentReader{r}
	if e.kind == symbolicLink {
		target, err := io.ReadAll(io.LimitReader(content, maxLink+1))
		switch {
		case err != nil:
			return err
		case len(target) > maxLink:
			return fmt.Errorf("%w: the target of the link is too long", ErrUnsafeEntry)
		}
		// unzip does not restore the time of a link.
		e.target, e.modified = string(target), time.Time{}
	}

	return visit(e, content)
}

func zipEntry(file *zip.File) (entry, error) {
	e := entry{name: zipName(file), size: int64(min(file.UncompressedSize64, 1<<62)), modified: zipTime(file), owner: zipOwner(file)}
	e.mode, e.asked = zipMode(file)
	switch kind := fileType(file); {
	case file.Flags&encrypted != 0:
		return e, fmt.Errorf("%w: it is encrypted", ErrEntryType)
	case kind == unix.S_IFLNK:
		e.kind = symbolicLink
	case strings.HasSuffix(e.name, "/") || kind == unix.S_IFDIR:
		e.kind = directory
	case kind == 0 || kind == unix.S_IFREG:
		e.kind = regularFile
	default:
		return e, ErrEntryType
	}
	// A version byte and the checksum of the name come first.
	for other := range extraFields(file.Extra, unicodePath) {
		if len(other) < 5 || string(other[5:]) != file.Name {
			return e, fmt.Errorf("%w: it has two names", ErrUnsafeEntry)
		}
	}
	// On Unix a \ is a character of a name; a name that leads out elsewhere is
	// refused all the same.
	_, err := cleanName(strings.ReplaceAll(e.name, `\`, "/"))

	return e, err
}

// zipName returns a name with the separators of DOS replaced as unzip does.
func zipName(file *zip.File) string {
	if file.CreatorVersion>>8 == 0 && !strings.Contains(file.Name, "/") {
		return strings.ReplaceAll(file.Name, `\`, "/")
	}

	return file.Name
}

// zipMode returns the mode of an entry, and whether the archive has one: those
// with attributes of DOS only have none.
func zipMode(file *zip.File) (mode fs.FileMode, asked bool) {
	const readOnly, dosDirectory = 0x01, 0x10
	switch attrs := file.ExternalAttrs; {
	case attrs>>16 != 0:
		return modeOf(attrs >> 16), true
	case attrs&dosDirectory != 0 || strings.HasSuffix(file.Name, "/"):
		return 0o777, false
	case attrs&readOnly != 0:
		return 0o444, false
	default:
		return 0o666, false
	}
}

// zipTime returns the time of an entry; that of DOS is a local time.
func zipTime(file *zip.File) time.Time {
	t := file.Modified
	if t.IsZero() || t.Location() != time.UTC {
		return t
	}

	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local)
}

// zipOwner returns the owner in the extra field of Info-ZIP: a version, then
// each number after its length.
func zipOwner(file *zip.File) *Owner {
	for field := range extraFields(file.Extra, unixOwner) {
		if len(field) == 11 && field[1] == 4 && field[6] == 4 {
			return &Owner{UID: int(binary.LittleEndian.Uint32(field[2:])), GID: int(binary.LittleEndian.Uint32(field[7:]))}
		}
	}

	return nil
}

// extraFields returns the fields of a tag.
func extraFields(extra []byte, tag uint16) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(extra) >= 4 {
			size := int(binary.LittleEndian.Uint16(extra[2:]))
			if size > len(extra)-4 {
				return
			}
			if binary.LittleEndian.Uint16(extra) == tag && !yield(extra[4:4+size]) {
				return
			}
			extra = extra[4+size:]
		}
	}
}
