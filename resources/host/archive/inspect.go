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

// Format is an archive format.
type Format int

// The formats that Inspect reads.
const (
	Tar Format = iota + 1
	TarGz
	Zip
)

// String returns the extension of the format.
func (f Format) String() string { return [...]string{"", "tar", "tar.gz", "zip"}[f] }

// Index counts what an archive holds.
type Index struct {
	// Entries counts all entries, Bytes the content of the files among them.
	Entries int
	Bytes   int64
}

// Inspect reads the archive at path to its end and checks what unpacking it
// into target would do. It writes nothing. It refuses entries that would land
// outside of target (absolute, with .., or through a link of the archive or of
// target), links that lead out of target, entries that would replace the
// archive itself, entries that are not a file, directory, hard or symbolic
// link, more bytes or entries than the limits, and archives that are damaged,
// cut short or of another format. The errors are those of Unpack. Memory grows
// with the number of directories and links; for a zip, with that of all
// entries.
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

// inspection is the check of one archive.
type inspection struct {
	// target is the real path to unpack into, empty when nothing is there yet.
	target string
	// archive is the checked file.
	archive fs.FileInfo
	left    Limits
	index   Index
	// links are those of the archive; dirs are parent directories of its entries
	// that are known to be inside of target.
	links, dirs map[string]bool
}

func (i *inspection) count() error {
	if i.index.Entries++; i.index.Entries > i.left.Entries {
		return ErrTooManyEntries
	}

	return nil
}

// bytes counts the content of a file.
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

// link refuses to replace a directory: earlier entries may be in there.
func (i *inspection) link(name, target string) error {
	clean, err := i.place(name)
	switch {
	case err != nil:
		return err
	case i.dirs[clean]:
		return fmt.Errorf("%w: it would replace a directory", ErrUnsafeEntry)
	}
	i.links[clean] = true

	return checkTarget(clean, target)
}

// hardLink refuses one to a symbolic link, which leads elsewhere from another
// directory.
func (i *inspection) hardLink(name, target string) error {
	if _, err := i.place(name); err != nil {
		return err
	}
	if _, err := i.place(target); err != nil {
		return fmt.Errorf("the hard link to %q: %w", target, err)
	}

	return nil
}

// place returns the clean name of an entry inside of target, not on or below a
// link of the archive.
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

// onDisk returns the file at a clean name in target, nil for none. The archive
// itself is refused: it would be gone before it is unpacked.
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
		return nil, fmt.Errorf("%w: it would replace the archive itself", ErrUnsafeEntry)
	}

	return info, nil
}

// inside refuses a directory that is, or is below, a link of the archive or a
// link on disk that leads out of target.
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
