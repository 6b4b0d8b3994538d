// Package archive checks and unpacks untrusted archives.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
)

// The errors of Unpack and Inspect, wrapped with the entry's name. More bytes
// than the limit is files.ErrTooLarge.
var (
	// ErrNotArchive is a damaged archive or one of another format.
	ErrNotArchive = errors.New("not a valid archive")
	// ErrUnsafeEntry is an entry that would land outside of the target, lead out
	// of it, or replace another one.
	ErrUnsafeEntry = errors.New("unsafe entry")
	// ErrEntryType is an entry that is not a regular file, directory or link.
	ErrEntryType = errors.New("only files, directories and links are unpacked")
	// ErrTooManyEntries is an archive with more entries than the limit.
	ErrTooManyEntries = errors.New("too many entries")
)

// The default limits.
const (
	DefaultBytes   = 1 << 30
	DefaultEntries = 100_000
)

// Limits bound the content of an archive. Zero means the default.
type Limits struct {
	Bytes   int64
	Entries int
}

func (l Limits) orDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Entries == 0 {
		l.Entries = DefaultEntries
	}

	return l
}

// Unpack unpacks a tar.gz into the existing directory dir. It takes regular
// files, directories, symbolic links that stay inside, and hard links to files
// unpacked before. Other entries, absolute names, names with .., names through
// a link and names that exist already are errors. Modes are kept without
// setuid, setgid and sticky; the process owns the files. After an error a part
// of the archive is in dir, which the caller removes.
func Unpack(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	limits = limits.orDefaults()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	unzipped, err := gzip.NewReader(&sourceReader{ctx: ctx, r: r})
	if err != nil {
		return archiveError(err)
	}
	u := &unpacking{root: root, left: limits, dirs: map[string]bool{".": true}}
	if err := eachEntry(unzipped, u.entry); err != nil {
		return err
	}

	return drain(unzipped, u.left.Bytes)
}

// eachEntry visits the entries of a tar in order.
func eachEntry(r io.Reader, visit func(header *tar.Header, content io.Reader) error) error {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return archiveError(err)
		}
		if err := visit(header, archive); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}

// sourceReader separates errors of the source from errors of the archive, and
// ends with its context. It lives for one call.
type sourceReader struct {
	ctx context.Context
	r   io.Reader
}

func (s *sourceReader) Read(b []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, sourceError{err}
	}
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = sourceError{err}
	}

	return n, err
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

type unpacking struct {
	root *os.Root
	left Limits
	// dirs are known to be real directories.
	dirs map[string]bool
}

func (u *unpacking) entry(header *tar.Header, content io.Reader) error {
	if u.left.Entries--; u.left.Entries < 0 {
		return ErrTooManyEntries
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	if err := u.makeDir(path.Dir(name)); err != nil {
		return err
	}
	mode := os.FileMode(header.Mode & 0o777)
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(name, mode, content)
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		// The owner must be able to fill and remove it.
		if err := u.makeDir(name); err != nil {
			return err
		}
		return u.root.Chmod(name, mode|0o700)
	case tar.TypeSymlink:
		if err := checkTarget(name, header.Linkname); err != nil {
			return err
		}
		return exists(u.root.Symlink(header.Linkname, name))
	case tar.TypeLink:
		return u.link(name, header.Linkname)
	default:
		return ErrEntryType
	}
}

// entryName returns the clean form of a name that stays inside.
func entryName(name string) (string, error) {
	clean := path.Clean(name)
	if strings.ContainsRune(name, 0) || hasDotDot(name) || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%w: its name leads out of the target", ErrUnsafeEntry)
	}

	return clean, nil
}

func hasDotDot(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// checkTarget accepts a link that first goes up, at most to the target
// directory, and then only down. The links it may pass on the way down are
// checked too, so no chain of links leads out. A .. after a name could, because
// that name may be a link.
func checkTarget(name, target string) error {
	down := target
	for strings.HasPrefix(down, "../") {
		down = strings.TrimLeft(down[len("../"):], "/")
	}
	switch {
	case target == "" || strings.ContainsRune(target, 0) || path.IsAbs(target):
	case down != ".." && hasDotDot(down):
	case filepath.IsLocal(path.Join(path.Dir(name), target)):
		return nil
	}

	return fmt.Errorf("%w: the link to %q leads out of the target", ErrUnsafeEntry, target)
}

// makeDir makes a directory and its parents. An existing directory is accepted,
// a link to one is not.
func (u *unpacking) makeDir(name string) error {
	if u.dirs[name] {
		return nil
	}
	if err := u.makeDir(path.Dir(name)); err != nil {
		return err
	}
	err := u.root.Mkdir(name, 0o755)
	if errors.Is(err, os.ErrExist) {
		info, look := u.root.Lstat(name)
		switch {
		case look != nil:
			return look
		case !info.IsDir():
			return fmt.Errorf("%w: %s is not a directory", ErrUnsafeEntry, name)
		}
		err = nil
	}
	u.dirs[name] = err == nil

	return err
}

func (u *unpacking) file(name string, mode os.FileMode, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return exists(err)
	}
	n, err := io.Copy(f, io.LimitReader(content, u.left.Bytes+1))
	u.left.Bytes -= n
	switch {
	case u.left.Bytes < 0:
		err = files.ErrTooLarge
	case err == nil:
		err = f.Chmod(mode)
	case !errors.As(err, new(*fs.PathError)):
		// An error of the file itself is not the archive's.
		err = archiveError(err)
	}

	return errors.Join(err, f.Close())
}

// link makes a hard link, tar's form of a second name of a file.
func (u *unpacking) link(name, target string) error {
	target, err := entryName(target)
	if err != nil {
		return err
	}
	info, err := u.root.Lstat(target)
	if err != nil || !info.Mode().IsRegular() || !u.dirs[path.Dir(target)] {
		return fmt.Errorf("%w: %q is not a file unpacked before", ErrUnsafeEntry, target)
	}

	return exists(u.root.Link(target, name))
}

// exists returns ErrUnsafeEntry for a name that exists already.
func exists(err error) error {
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: it exists already", ErrUnsafeEntry)
	}

	return err
}

// drain reads the padding after the archive up to the checksum at the end, at
// most left bytes.
func drain(r io.Reader, left int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, left+1))
	switch {
	case err != nil:
		return archiveError(err)
	case n > left:
		return files.ErrTooLarge
	default:
		return nil
	}
}
