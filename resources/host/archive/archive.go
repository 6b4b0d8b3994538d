// Package archive checks and unpacks untrusted archives. It reads one open
// file, and writes below an os.Root.
package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// The errors of an archive, wrapped with the entry's name. More bytes than the
// limit is files.ErrTooLarge.
var (
	// ErrNotArchive is a damaged archive or one of another format.
	ErrNotArchive = errors.New("not a valid archive")
	// ErrUnsafeEntry is returned for an entry that would be written outside the target, leads out
	// of it, or replaces another entry.
	ErrUnsafeEntry = errors.New("unsafe entry")
	// ErrLeadsOut is returned for a link that leads out of the target. It wraps ErrUnsafeEntry.
	ErrLeadsOut = errors.New("a link leads out of the target")
	// ErrEntryType is an entry that is not a regular file, directory or link.
	ErrEntryType = errors.New("only files, directories and links are unpacked")
	// ErrTooManyEntries is an archive with more entries than the limit.
	ErrTooManyEntries = errors.New("too many entries")
)

// The default limits.
const (
	defaultBytes   = 1 << 30
	defaultEntries = 100_000
	defaultNames   = 64 << 20
)

// Limits bound the content of an archive. Zero means the default.
type Limits struct {
	Bytes int64
	// Entries also bounds the directories that names of entries are in.
	Entries int
	// Names bounds the bytes of names and targets of links.
	Names int64
	// LinksOut allows symbolic links that lead out of the target. No entry is written
	// through them.
	LinksOut bool
}

func (l Limits) orDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = defaultBytes
	}
	if l.Entries == 0 {
		l.Entries = defaultEntries
	}
	if l.Names == 0 {
		l.Names = defaultNames
	}

	return l
}

// Format is an archive format.
type Format int

// The formats that Inspect and Extract read.
const (
	Tar Format = iota + 1
	TarGz
	Zip
	TarBz2
	TarXz
	TarZst
)

// Formats returns all formats, the common ones first.
func Formats() []Format { return []Format{TarGz, TarBz2, TarXz, TarZst, Tar, Zip} }

// String returns the extension of the format.
func (f Format) String() string {
	return [...]string{"", "tar", "tar.gz", "zip", "tar.bz2", "tar.xz", "tar.zst"}[f]
}

// Index counts what an archive holds.
type Index struct {
	// Entries counts all entries, Bytes the content of the files among them.
	Entries int
	Bytes   int64
}

// Owner is the owner of an entry; the names are empty where the archive has
// only numbers.
type Owner struct {
	User, Group string
	UID, GID    int
}

// Options are what Extract restores.
type Options struct {
	// Preserve restores modes with setuid, setgid and sticky bits, and owners, also
	// of existing directories of root and the running user. Without it, the umask and these
	// bits are removed from the modes, the process owns all, and existing directories keep
	// owner and mode.
	Preserve bool
	// ResolveOwner returns the owner of an entry on this machine. Preserve needs it.
	ResolveOwner func(Owner) (uid, gid int)
}

// Inspect reads the archive to its end and checks what Extract into target would
// do; nil is a target that does not exist yet. It writes nothing. It refuses
// entries that would land outside of target (absolute, with .., or through a link
// of the archive or of target), links that lead out of target, entries that would
// replace the archive itself, entries that are not a file, directory, hard or
// symbolic link, more bytes or entries than the limits, and archives that are
// damaged, cut short or of another format. Memory grows with the number of
// directories and links; for a zip, with that of all entries.
func (a *Archive) Inspect(ctx context.Context, target *os.Root, limits Limits) (Index, error) {
	return a.scan(ctx, target, limits, true, func(_ entry, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// Extract unpacks the archive into the directory at path after Inspect accepted it, and
// syncs the file system. It creates a missing directory. It checks everything again while it writes. Existing files, links and empty directories are replaced, never
// written through; directories stay. Modes and times of directories come last.
// After an error that Inspect does not return a part of the archive is in there.
func (a *Archive) Extract(ctx context.Context, disk *files.Disk, path string, limits Limits, o Options) (Index, error) {
	target, err := openRoot(path)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return Index{}, err
	}
	index, err := a.Inspect(ctx, target, limits)
	if err != nil {
		err = fmt.Errorf("%s is not unpacked: %w", a.path, err)
	} else if target == nil {
		// A directory that another user made during the inspection keeps its owner and mode.
		if _, err = disk.EnsureDirectory(path); err == nil {
			target, err = openRoot(path)
		}
	}
	if target != nil {
		defer target.Close()
	}
	if err != nil {
		return index, withRemedy(err, path)
	}
	if err := a.write(ctx, disk, path, target, limits, o); err != nil {
		return index, fmt.Errorf("could not extract: %w", withRemedy(err, path))
	}

	return index, nil
}

func (a *Archive) write(ctx context.Context, disk *files.Disk, path string, target *os.Root, limits Limits, o Options) (err error) {
	w := newWriter(target)
	w.path, w.options, w.format = path, o, a.format
	if w.umask, err = umask(); err != nil {
		return err
	}
	unpack := func(e entry, content io.Reader) error {
		defer disk.Units.NoteChange(filepath.Join(path, e.name))
		return w.write(e, content)
	}
	if _, err := a.scan(ctx, target, limits, false, unpack); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}

	return w.locate(syncFileSystem(target), ".")
}

// Unpack unpacks a tar.gz into the existing directory dir. It takes regular
// files, directories, symbolic links that stay inside, and hard links to files
// unpacked before. Other entries, absolute names, names with .., names through
// a link and names that exist already are errors. Modes are kept without
// setuid, setgid and sticky; the process owns the files. After an error a part
// of the archive is in dir, which the caller removes.
func Unpack(ctx context.Context, r io.Reader, dir string, limits Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w := newWriter(root)
	w.path, w.fresh = dir, true
	c := newChecker(root, limits)
	if err := eachCompressed(&sourceReader{ctx: ctx, r: r}, TarGz, c.visit(w.write), c.drain); err != nil {
		return err
	}

	return w.finish()
}

// scan visits the checked entries of an archive; see eachZip for linksFirst.
func (a *Archive) scan(ctx context.Context, target *os.Root, limits Limits, linksFirst bool, visit visitor) (Index, error) {
	c := newChecker(target, limits)
	var err error
	if c.archive, err = a.file.Stat(); err != nil {
		return Index{}, err
	}
	source := &sourceReader{ctx: ctx, r: io.NewSectionReader(a.file, 0, c.archive.Size())}
	switch a.format {
	case Zip:
		err = eachZip(&sourceReaderAt{ctx: ctx, r: a.file, left: maxDirectory}, c.archive.Size(), linksFirst, c.visit(visit))
	case Tar:
		err = eachTar(source, c.visit(visit))
	case 0:
		return c.index, fmt.Errorf("it is %w of a known format%s", ErrNotArchive, sniff(a.file))
	default:
		if a.format == TarXz {
			err = checkXZ(&sourceReader{ctx: ctx, r: io.NewSectionReader(a.file, 0, c.archive.Size())})
		}
		if err == nil {
			err = eachCompressed(source, a.format, c.visit(visit), c.drain)
		}
	}
	if !errors.Is(err, ErrNotArchive) {
		return c.index, err
	}
	err = fmt.Errorf("as %s it is %w%s", a.format, err, sniff(a.file))
	if found := a.detect(); found != 0 && found != a.format {
		err = fmt.Errorf("%w (to unpack it, set format: %s)", err, found)
	}

	return c.index, err
}

// sniff names the content type where that explains the error: servers often
// send an error page in place of an archive.
func sniff(f *os.File) string {
	var start [512]byte
	n, _ := f.ReadAt(start[:], 0)
	kind := http.DetectContentType(start[:n])
	if n == 0 {
		return ", it is empty"
	}
	if kind == "application/octet-stream" {
		return ""
	}

	return ", its content looks like " + kind
}

// syncFileSystem makes durable all that was written to the file system of a
// directory.
func syncFileSystem(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := paths.Retry(func() error { return unix.Syncfs(int(dir.Fd())) }); err != nil {
		return &fs.PathError{Op: "syncfs", Path: root.Name(), Err: err}
	}

	return nil
}

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
