package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// readBuffer is the size of a read.
const readBuffer = 128 << 10

func (i *inspection) tarGz(ctx context.Context, f *os.File) error {
	unzipped, err := gzip.NewReader(bufio.NewReaderSize(&sourceReader{ctx: ctx, r: f}, readBuffer))
	if err != nil {
		return archiveError(err)
	}
	if err := eachEntry(unzipped, i.tarEntry); err != nil {
		return err
	}

	return drain(unzipped, i.left.Bytes)
}

// tar refuses a tar without the two empty blocks at its end: only they show
// that it was not cut between two entries.
func (i *inspection) tar(ctx context.Context, f *os.File) error {
	if err := checkPlain(f); err != nil {
		return err
	}
	source := &endReader{r: bufio.NewReaderSize(&sourceReader{ctx: ctx, r: f}, readBuffer)}
	if err := eachEntry(source, i.tarEntry); err != nil {
		return err
	}
	if source.ended {
		return fmt.Errorf("%w: the end mark is missing: the archive was cut short", ErrNotArchive)
	}

	return nil
}

// endReader remembers that the end was read.
type endReader struct {
	r     io.Reader
	ended bool
}

func (e *endReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.ended = e.ended || errors.Is(err, io.EOF)

	return n, err
}

func (i *inspection) tarEntry(header *tar.Header, _ io.Reader) error {
	if err := i.count(); err != nil {
		return err
	}
	if err := checkRecords(header); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg, tar.TypeGNUSparse:
		// The program tar writes what the header says; reading on checks that the
		// content is there.
		if err := i.bytes(header.Size); err != nil {
			return err
		}
		return i.file(header.Name)
	case tar.TypeDir:
		return i.directory(header.Name)
	case tar.TypeSymlink:
		return i.link(header.Name, header.Linkname)
	case tar.TypeLink:
		return i.hardLink(header.Name, header.Linkname)
	default:
		return ErrEntryType
	}
}

// magicAt is the offset of the magic word in a header.
const magicAt = 257

// checkPlain refuses a tar that the program tar would take for a compressed
// one, and unpack its content instead: without a magic word in the first header
// it goes by the first bytes.
func checkPlain(f *os.File) error {
	var first [512]byte
	n, err := f.ReadAt(first[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	magic := first[magicAt:]
	if n < len(first) || bytes.HasPrefix(magic, []byte("ustar\x00")) || bytes.HasPrefix(magic, []byte("ustar  \x00")) || first == [512]byte{} {
		return nil
	}

	return fmt.Errorf("%w: its first header is not a ustar header", ErrNotArchive)
}

// checkRecords refuses headers that the program tar reads in another way: a
// global header renames all later entries, an extended name wins over a long
// one, and an empty record is a value.
func checkRecords(header *tar.Header) error {
	records := header.PAXRecords
	if header.Typeflag == tar.TypeXGlobalHeader {
		for key := range records {
			if !slices.Contains([]string{"comment", "charset", "mtime", "atime", "ctime"}, key) {
				return fmt.Errorf("%w: a global header with %q", ErrEntryType, key)
			}
		}
		return nil
	}
	names := map[string]string{"path": header.Name, "linkpath": header.Linkname, "GNU.sparse.name": header.Name}
	_, sparse := records["GNU.sparse.name"]
	for key, want := range names {
		if value, set := records[key]; set && (value == "" || value != want) && !(key == "path" && sparse && value != "") {
			return fmt.Errorf("%w: it has two names", ErrUnsafeEntry)
		}
	}
	if size, set := records["size"]; set && size == "" {
		return fmt.Errorf("%w: it has two sizes", ErrUnsafeEntry)
	}
	if header.Size != 0 && (header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeSymlink) {
		return fmt.Errorf("%w: a directory or link with content", ErrEntryType)
	}

	return nil
}
