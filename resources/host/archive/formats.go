package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"golang.org/x/sys/unix"
)

// kind is the kind of an entry.
type kind int

const (
	// nothing means that the entry only describes other entries.
	nothing kind = iota
	regularFile
	directory
	symbolicLink
	hardLink
)

// entry is an entry of an archive of any format.
type entry struct {
	name string
	kind kind
	// size is the declared length of a file, -1 if it is unknown.
	size int64
	// mode has permissions and special bits. asked is false if the archive has none: then the umask always
	// applies.
	mode  fs.FileMode
	asked bool
	// target is the target of a link.
	target   string
	modified time.Time
	// owner is nil if the archive has none.
	owner *Owner
	// sparse files have holes.
	sparse bool
}

// visitor receives an entry and its content.
type visitor func(entry, io.Reader) error

func modeOf(unixMode uint32) fs.FileMode {
	mode := fs.FileMode(unixMode & 0o777)
	for bit, set := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if unixMode&bit != 0 {
			mode |= set
		}
	}

	return mode
}

// sourceReader distinguishes errors of the source from errors of the archive. It ends with its context.
type sourceReader struct {
	ctx context.Context
	r   io.Reader
	// failed is the first error of the source.
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

// sourceError does not unwrap, so its cause does not look like an error of the archive.
type sourceError struct{ error }

func archiveError(err error) error {
	var source sourceError
	if errors.As(err, &source) {
		return source.error
	}

	return fmt.Errorf("%w: %w", ErrNotArchive, err)
}

// contentReader reads the content of an entry and returns errors of archives.
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

// eachTar visits the entries of a plain tar. It requires the two empty blocks at the end: without them the
// tar may have been cut between two entries.
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

// endReader reports whether the end was read.
type endReader struct {
	r     io.Reader
	ended bool
}

func (e *endReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.ended = e.ended || errors.Is(err, io.EOF)

	return n, err
}

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

// checkGlobal refuses a global header that archive/tar ignores: other programs would use other names.
func checkGlobal(header *tar.Header) error {
	for key := range header.PAXRecords {
		if !slices.Contains([]string{"comment", "charset", "mtime", "atime", "ctime"}, key) {
			return fmt.Errorf("%w: a global header with %q", ErrEntryType, key)
		}
	}

	return nil
}

// maxWindow limits the memory of a decompressor: xz -9 needs 64 MiB, zstd --long 128 MiB.
const maxWindow = 128 << 20

// detect returns the format by the content, zero if it is unknown.
func (a *Archive) detect() Format {
	var block [512]byte
	n, _ := a.file.ReadAt(block[:], 0)
	start := block[:n]
	for _, known := range []struct {
		magic  string
		format Format
	}{
		{"\x1f\x8b", TarGz}, {"BZh", TarBz2}, {"\xfd7zXZ\x00", TarXz}, {"\x28\xb5\x2f\xfd", TarZst}, {"PK\x03\x04", Zip}, {"PK\x05\x06", Zip},
	} {
		if bytes.HasPrefix(start, []byte(known.magic)) {
			return known.format
		}
	}
	if isTarHeader(start) {
		return Tar
	}

	return 0
}

// isTarHeader reports whether a block has the checksum of a tar header. An empty block counts, because it
// begins a tar without entries.
func isTarHeader(block []byte) bool {
	const size, at, length = 512, 148, 8
	if len(block) < size {
		return false
	}
	sum := int64(length * ' ')
	for i, b := range block[:size] {
		if i < at || i >= at+length {
			sum += int64(b)
		}
	}
	text := bytes.Trim(block[at:at+length], " \x00")
	want, err := strconv.ParseInt(string(text), 8, 64)

	return err == nil && want == sum || sum == length*' ' && len(text) == 0
}

func decompress(source io.Reader, format Format) (content io.Reader, release func(), err error) {
	in := buffered(source)
	release = func() {}
	switch format {
	case TarGz:
		content, err = gzip.NewReader(in)
	case TarBz2:
		content = bzip2.NewReader(in)
	case TarXz:
		content, err = xz.NewReader(in)
	default:
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			content, release = d, d.Close
		}
	}
	if err != nil {
		return nil, nil, archiveError(err)
	}

	return content, release, nil
}

// eachCompressed visits the entries of a compressed tar. drain then reads the rest, which has the checksum.
func eachCompressed(source io.Reader, format Format, visit visitor, drain func(io.Reader) error) error {
	content, release, err := decompress(source, format)
	if err != nil {
		return err
	}
	defer release()
	end := &endReader{r: content}
	if err := eachEntry(end, visit); err != nil {
		return err
	}
	// Without the end mark, the tar may have been cut between two entries. gzip detects this itself.
	if end.ended && format != TarGz {
		return fmt.Errorf("%w: the end mark is missing: the archive was cut short", ErrNotArchive)
	}

	return drain(content)
}

const (
	// maxDirectory limits the directory of a zip, which needs memory.
	maxDirectory = 64 << 20
	// maxLink limits the target of a link.
	maxLink = 4096
	// encrypted flags an entry that needs a password.
	encrypted = 1
	// unicodePath is the extra field with another name. unixOwner is the extra field with the owner.
	unicodePath, unixOwner = 0x7075, 0x7875
)

// eachZip visits the entries of a zip, links first or last. A check visits links first, because no entry may
// lead through any of them. A write visits them last.
func eachZip(source *sourceReaderAt, size int64, linksFirst bool, visit visitor) error {
	// Any bytes may precede a zip, for example another archive.
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

// sourceReaderAt is a sourceReader for a zip. It reads at most left bytes, unless left is negative.
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

// fileType returns the Unix file type, zero for a file or directory. Like unzip, it ignores the system that
// made the zip.
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
	// The name follows a version byte and a checksum.
	for other := range extraFields(file.Extra, unicodePath) {
		if len(other) < 5 || string(other[5:]) != file.Name {
			return e, fmt.Errorf("%w: it has two names", ErrUnsafeEntry)
		}
	}
	// On Unix a \ is part of a name. A name that leads out on other systems is refused as well.
	_, err := cleanName(strings.ReplaceAll(e.name, `\`, "/"))

	return e, err
}

func zipName(file *zip.File) string {
	if file.CreatorVersion>>8 == 0 && !strings.Contains(file.Name, "/") {
		return strings.ReplaceAll(file.Name, `\`, "/")
	}

	return file.Name
}

// zipMode returns the mode of an entry, and whether the archive has a mode. Entries with DOS attributes only
// have none.
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

// zipTime returns the time of an entry. A DOS time is a local time.
func zipTime(file *zip.File) time.Time {
	t := file.Modified
	if t.IsZero() || t.Location() != time.UTC {
		return t
	}

	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local)
}

// zipOwner returns the owner in the extra field of Info-ZIP: a version, and numbers with their lengths.
func zipOwner(file *zip.File) *Owner {
	for field := range extraFields(file.Extra, unixOwner) {
		if len(field) == 11 && field[1] == 4 && field[6] == 4 {
			return &Owner{UID: int(binary.LittleEndian.Uint32(field[2:])), GID: int(binary.LittleEndian.Uint32(field[7:]))}
		}
	}

	return nil
}

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
