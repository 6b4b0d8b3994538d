package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// Archive is an open archive that nobody else can change. Make it with Open, and
// close it.
type Archive struct {
	path   string
	file   *os.File
	format Format
	// Foreign is the error of files.Entry.Foreign: what is in the archive may be shown
	// only to those who know its checksum.
	Foreign error
	// Checksum is the hex SHA-256 of the content.
	Checksum string
}

// Open opens the archive at path, which must not be a link, and reads its checksum. It detects
// a zero format by the content. If users other than root and the running user may write to the
// archive, it opens a private copy in the state directory of disk.
func Open(ctx context.Context, disk *files.Disk, path string, format Format) (*Archive, error) {
	entry, err := disk.Look(path)
	if err != nil {
		return nil, err
	}
	f, err := entry.OpenForeign()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	content := io.TeeReader(&sourceReader{ctx: ctx, r: io.LimitReader(f, entry.Size)}, sum)
	if isPrivate(f) {
		_, err = io.Copy(io.Discard, content)
	} else {
		original := f
		f, err = privateCopy(ctx, disk, content)
		err = errors.Join(err, original.Close())
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("could not read the archive: %w", err)
	}

	a := &Archive{path: path, file: f, format: format, Foreign: entry.Foreign(), Checksum: hex.EncodeToString(sum.Sum(nil))}
	if format == 0 {
		a.format = a.detect()
	}

	return a, nil
}

// Close closes the archive.
func (a *Archive) Close() error { return a.file.Close() }

// isPrivate reports whether only root and the running user may write to a file.
func isPrivate(f *os.File) bool {
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Fstat(int(f.Fd()), &st) })

	return err == nil && paths.Author{}.Check(f.Name(), &st, paths.Trusted) == nil
}

// privateCopy returns content in a file without a name.
func privateCopy(ctx context.Context, disk *files.Disk, content io.Reader) (*os.File, error) {
	dir, err := disk.TempDir("archive")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "copy"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = io.Copy(f, content)
	}

	return f, errors.Join(err, disk.RemoveAll(context.WithoutCancel(ctx), dir))
}

// openRoot opens a directory; only root, the running user and
// the owner of a directory on the way could lead it elsewhere, the last one to
// what is theirs.
func openRoot(path string) (*os.Root, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return dir.Root()
}
