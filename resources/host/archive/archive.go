// Package archive checks and unpacks untrusted archives. It reads one open
// file, and writes below an os.Root.
package archive

import (
	"cmp"
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
	l.Bytes, l.Entries, l.Names = cmp.Or(l.Bytes, defaultBytes), cmp.Or(l.Entries, defaultEntries), cmp.Or(l.Names, defaultNames)

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

// Index has the number of entries of an archive.
type Index struct {
	// Entries counts all entries. Bytes is the size of all files.
	Entries int
	Bytes   int64
}

// Owner is the owner of an entry. The names are empty if the archive has only numbers.
type Owner struct {
	User, Group string
	UID, GID    int
}

// Options are what Extract restores.
type Options struct {
	// Preserve restores owners, and modes with setuid, setgid and sticky bits, also of existing directories
	// of root and the running user. Without it, all files belong to the process, modes lose these bits and
	// the bits of the umask, and existing directories keep owner and mode.
	Preserve bool
	// ResolveOwner returns the owner of an entry on this machine. Preserve needs it.
	ResolveOwner func(Owner) (uid, gid int)
}

// Inspect reads the complete archive and checks what Extract would do in target, which is nil if it does not
// exist yet. It writes nothing. It refuses entries outside of target (absolute names, names with .., names
// through a link of the archive or of target), links that lead out of target, entries that replace the
// archive itself, and entries that are neither a file, a directory nor a link. It also refuses an archive
// that exceeds the limits, is damaged, is incomplete or has another format. It needs memory for each
// directory and link, and for each entry of a zip.
func (a *Archive) Inspect(ctx context.Context, target *os.Root, limits Limits) (Index, error) {
	return a.scan(ctx, target, limits, true, func(_ entry, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// Extract unpacks the archive into the directory at path if Inspect accepts it, and syncs the file system. It
// creates a missing directory, and checks everything again while it writes. It replaces files, links and
// empty directories, and never writes through a link. Other directories stay. The modes and times of
// directories come last. If Extract fails during the write, a part of the archive is in the directory.
func (a *Archive) Extract(ctx context.Context, disk *files.Disk, path string, limits Limits, o Options) (Index, error) {
	target, err := openRoot(path)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return Index{}, err
	}
	index, err := a.Inspect(ctx, target, limits)
	if err != nil {
		err = fmt.Errorf("%s is not unpacked: %w", a.path, err)
	} else if target == nil {
		// An existing directory keeps its owner and mode, also if another user created it since the
		// inspection.
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

// Unpack unpacks a tar.gz into the existing directory dir. It accepts regular files, directories, symbolic
// links that stay in dir, and hard links to unpacked files. Other entries, absolute names, names with ..,
// names through a link and existing names are errors. Files keep their modes without setuid, setgid and
// sticky bits, and belong to the process. After an error a part of the archive is in dir; the caller removes
// dir.
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

// sniff describes the content of a file that is not an archive: servers often send an error page instead.
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

// syncFileSystem syncs the file system of a directory.
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

// Archive is an open archive that no other user can change. Create it with Open and close it.
type Archive struct {
	path   string
	file   *os.File
	format Format
	// Foreign is the error of files.Entry.Foreign. If it is set, only a user who knows the checksum may see
	// the content.
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

// openRoot opens a directory like paths.OpenDir.
func openRoot(path string) (*os.Root, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return dir.Root()
}
