package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// eachTar visits the entries of a plain tar. One without the two empty blocks at
// its end is refused: only they show that it was not cut between two entries.
func eachTar(source io.Reader, visit visitor) error {
	whole := &endReader{r: buffered(source)}
	if err := eachEntry(whole, visit); err != nil {
		return err
	}
	if whole.ended {
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

// eachEntry visits the entries of a tar in order.
func eachEntry(r io.Reader, visit visitor) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return archiveError(err)
		}
		e, err := tarEntry(header)
		if err == nil {
			err = visit(e, contentReader{archive})
		}
		if err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}

func tarEntry(header *tar.Header) (entry, error) {
	_, sparse := header.PAXRecords["GNU.sparse.major"]
	e := entry{
		name: header.Name, target: header.Linkname, size: header.Size, mode: modeOf(uint32(header.Mode)), asked: true, modified: header.ModTime,
		owner: &Owner{User: header.Uname, Group: header.Gname, UID: header.Uid, GID: header.Gid}, sparse: sparse || header.Typeflag == tar.TypeGNUSparse,
	}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader:
		return e, checkGlobal(header)
	case tar.TypeReg, tar.TypeGNUSparse:
		e.kind = regularFile
		if strings.HasSuffix(header.Name, "/") {
			e.kind = directory
		}
	case tar.TypeDir:
		e.kind = directory
	case tar.TypeSymlink:
		e.kind = symbolicLink
	case tar.TypeLink:
		e.kind = hardLink
	default:
		return e, ErrEntryType
	}

	return e, nil
}

// checkGlobal refuses a header for all later entries that archive/tar ignores:
// they would get other names than elsewhere.
func checkGlobal(header *tar.Header) error {
	for key := range header.PAXRecords {
		if !slices.Contains([]string{"comment", "charset", "mtime", "atime", "ctime"}, key) {
			return fmt.Errorf("%w: a global header with %q", ErrEntryType, key)
		}
	}

	return nil
}
