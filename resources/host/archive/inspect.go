package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
)

// Format is a kind of archive.
type Format int

// The formats that Inspect reads.
const (
	Tar Format = iota + 1
	TarGz
	Zip
)

// String gives the format as its extension.
func (f Format) String() string { return [...]string{"", "tar", "tar.gz", "zip"}[f] }

// Index is what an archive comes to.
type Index struct {
	// Entries counts all of them, Bytes is what the files among them hold.
	Entries int
	Bytes   int64
}

// Inspect reads the archive at path to its end and judges what unpacking it
// into target would do. It writes nothing. Refused are entries that would land
// outside of target (absolute, with .., or through a link, be it of the archive
// or one that stands in target), links that lead out of it, entries in the place
// of the archive itself or that are no file, directory, hard or symbolic link, more bytes or entries than the limits
// allow, and archives that are damaged, cut short or of another format. The
// errors are those of Unpack. Memory grows with the number of directories and
// links; of a zip, with that of all entries.
func Inspect(ctx context.Context, path string, format Format, target string, limits Limits) (Index, error) {
	f, err := files.Open(path)
	if err != nil {
		return Index{}, err
	}
	defer f.Close()
	i := &inspection{left: limits.orDefaults(), links: map[string]bool{}, dirs: map[string]bool{".": true}}
	if i.archive, err = f.Stat(); err != nil {
		return Index{}, err
	}
	if i.target, err = filepath.EvalSymlinks(target); err != nil && !files.IsAbsent(err) {
		return Index{}, err
	}
	switch format {
	case Zip:
		err = i.zip(ctx, f)
	case TarGz:
		err = i.tarGz(ctx, f)
	default:
		err = i.tar(ctx, f)
	}
	if errors.Is(err, ErrNotArchive) {
		err = fmt.Errorf("as %s it is %w%s", format, err, sniff(f))
	}

	return i.index, err
}

// sniff tells what the content looks like, where that explains something: an
// error page is often served in place of an archive.
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

// inspection is one archive that is read through.
type inspection struct {
	// target is the real path of where it is to be unpacked, empty when nothing is there yet.
	target string
	// archive is the file that is read.
	archive fs.FileInfo
	left    Limits
	index   Index
	// links are those of the archive, dirs the directories that its entries stand
	// in and that are known to be inside of target.
	links, dirs map[string]bool
}

func (i *inspection) count() error {
	if i.index.Entries++; i.index.Entries > i.left.Entries {
		return ErrTooManyEntries
	}

	return nil
}

// bytes counts what a file unpacks to.
func (i *inspection) bytes(n int64) error {
	if n > i.left.Bytes {
		return fmt.Errorf("%w: more than the %d bytes that are allowed would be unpacked", files.ErrTooLarge, i.index.Bytes+i.left.Bytes)
	}
	i.left.Bytes -= n
	i.index.Bytes += n

	return nil
}

func (i *inspection) file(name string) error {
	_, err := i.place(name)

	return err
}

func (i *inspection) directory(name string) error {
	clean, err := i.place(name)
	if err != nil {
		return err
	}

	return i.inside(clean)
}

// link takes the place of nothing: what came before it in the archive may be in there.
func (i *inspection) link(name, target string) error {
	clean, err := i.place(name)
	switch {
	case err != nil:
		return err
	case i.dirs[clean]:
		return fmt.Errorf("%w: it takes the place of a directory", ErrUnsafeEntry)
	}
	i.links[clean] = true

	return checkTarget(clean, target)
}

// hardLink refuses one to a symbolic link, which leads elsewhere from another directory.
func (i *inspection) hardLink(name, target string) error {
	if _, err := i.place(name); err != nil {
		return err
	}
	if _, err := i.place(target); err != nil {
		return fmt.Errorf("the hard link to %q: %w", target, err)
	}

	return nil
}

// place gives the clean name of an entry that lands inside of target and not
// on or below a link of the archive.
func (i *inspection) place(name string) (string, error) {
	if path.IsAbs(name) {
		return "", fmt.Errorf("%w: its name is absolute", ErrUnsafeEntry)
	}
	clean, err := entryName(name)
	switch {
	case err != nil:
		return "", err
	case i.links[clean]:
		return "", fmt.Errorf("%w: a link of that name is in the archive", ErrUnsafeEntry)
	}

	if err := i.inside(path.Dir(clean)); err != nil {
		return "", err
	}
	_, err = i.onDisk(clean)

	return clean, err
}

// onDisk gives what stands at a clean name in target, nil when nothing does. The
// archive itself is refused: it would be gone before all of it was unpacked.
func (i *inspection) onDisk(clean string) (fs.FileInfo, error) {
	if i.target == "" {
		return nil, nil
	}
	info, err := os.Lstat(filepath.Join(i.target, clean))
	switch {
	case files.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case os.SameFile(info, i.archive):
		return nil, fmt.Errorf("%w: it would take the place of the archive itself", ErrUnsafeEntry)
	}

	return info, nil
}

// inside says that a directory is no link of the archive, and no link on the
// disk that leads out of target; nor is any above it.
func (i *inspection) inside(dir string) error {
	if i.dirs[dir] {
		return nil
	}
	if err := i.inside(path.Dir(dir)); err != nil {
		return err
	}
	if i.links[dir] {
		return fmt.Errorf("%w: it goes through the link %s", ErrUnsafeEntry, dir)
	}
	if err := i.insideOnDisk(dir); err != nil {
		return err
	}
	i.dirs[dir] = true

	return nil
}

func (i *inspection) insideOnDisk(dir string) error {
	info, err := i.onDisk(dir)
	if err != nil || info == nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	full := filepath.Join(i.target, dir)
	real, err := filepath.EvalSymlinks(full)
	if err == nil && (real == i.target || strings.HasPrefix(real, strings.TrimSuffix(i.target, "/")+"/")) {
		return nil
	}

	return fmt.Errorf("%w: it goes through %s, a link that leads out of the target", ErrUnsafeEntry, full)
}
