package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// checker refuses the unsafe entries of one archive.
type checker struct {
	// target is nil if the directory does not exist yet.
	target *os.Root
	// archive is the file of the archive, nil for a stream.
	archive fs.FileInfo
	limits  Limits
	index   Index
	// links are the links of the archive. dirs are directories of entries that are known to be in the target.
	links, dirs map[string]bool
	// mounts are the mount points below the target.
	mounts []paths.MountPoint
	// names counts the bytes of names.
	names int64
}

func newChecker(target *os.Root, limits Limits) *checker {
	c := &checker{target: target, limits: limits.orDefaults(), links: map[string]bool{}, dirs: map[string]bool{".": true}}
	if target == nil {
		return c
	}
	// Without a list of mounts, the system refuses to replace a mount point.
	if dir, err := target.Open("."); err == nil {
		c.mounts, _ = paths.MountsBelow(int(dir.Fd()), ".")
		_ = dir.Close()
	}

	return c
}

// visit returns a visitor that checks an entry, and passes it on with a clean name and limited content.
func (c *checker) visit(next visitor) visitor {
	return func(e entry, content io.Reader) error {
		if c.index.Entries++; c.index.Entries > c.limits.Entries {
			return ErrTooManyEntries
		}
		if e.kind == nothing {
			return nil
		}
		if err := c.check(&e); err != nil {
			return err
		}
		if e.kind == regularFile && e.size > c.left() {
			return c.tooLarge()
		}
		bounded := &boundedReader{c, content}
		if err := next(e, bounded); err != nil || e.kind != directory || e.size <= 0 {
			return err
		}
		// A directory may have content. Reading it takes as long as reading a file.
		_, err := io.Copy(io.Discard, bounded)

		return err
	}
}

// count limits the directories and the bytes of names, which need memory.
func (c *checker) count(text string) error {
	switch c.names += int64(len(text)); {
	case c.names > c.limits.Names:
		return fmt.Errorf("%w: more than %d bytes of names", ErrTooManyEntries, c.limits.Names)
	case len(c.dirs) > c.limits.Entries+1:
		return fmt.Errorf("%w: more than %d directories", ErrTooManyEntries, c.limits.Entries)
	}

	return nil
}

func (c *checker) left() int64 { return c.limits.Bytes - c.index.Bytes }

func (c *checker) tooLarge() error {
	return fmt.Errorf("%w: more than the %d bytes that are allowed would be unpacked", files.ErrTooLarge, c.limits.Bytes)
}

// boundedReader counts the content of an archive.
type boundedReader struct {
	c *checker
	r io.Reader
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if int64(n) > b.c.left() {
		return 0, b.c.tooLarge()
	}
	b.c.index.Bytes += int64(n)

	return n, err
}

// drain reads the padding after the archive, up to the limit.
func (c *checker) drain(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, c.left()+1))
	switch {
	case err != nil:
		return archiveError(err)
	case n > c.left():
		return c.tooLarge()
	default:
		return nil
	}
}

// check refuses an entry outside of the target and a link that leads out. It cleans the names.
func (c *checker) check(e *entry) (err error) {
	if e.name, err = c.place(e.name); err != nil {
		return err
	}
	if err := c.count(e.name + e.target); err != nil {
		return err
	}
	if e.kind != directory {
		if err := c.mounted(e.name); err != nil {
			return err
		}
	}
	switch e.kind {
	case directory:
		return c.inside(e.name)
	case symbolicLink:
		if c.dirs[e.name] {
			// Earlier entries may be in the directory.
			return fmt.Errorf("%w: it would replace a directory", ErrUnsafeEntry)
		}
		c.links[e.name] = true
		if err := checkLinkTarget(e.name, e.target); !c.limits.LinksOut || !errors.Is(err, ErrLeadsOut) {
			return err
		}
	case hardLink:
		// A hard link to a symbolic link would lead elsewhere from another directory.
		target := e.target
		if e.target, err = c.place(target); err != nil {
			return fmt.Errorf("the hard link to %q: %w", target, err)
		}
	}

	return nil
}

// mounted returns paths.ErrMounted if a name in the target is a mount point.
func (c *checker) mounted(name string) error {
	if i := slices.IndexFunc(c.mounts, func(p paths.MountPoint) bool { return p.Path == name }); i >= 0 {
		return c.mounts[i].Err()
	}

	return nil
}

// place returns the clean name of an entry in the target. The name must not be, or be below, a link of the
// archive.
func (c *checker) place(name string) (string, error) {
	clean, err := cleanName(name)
	switch {
	case err != nil:
		return "", err
	case c.links[clean]:
		return "", fmt.Errorf("%w: a link of that name is in the archive", ErrUnsafeEntry)
	}
	if err := c.inside(path.Dir(clean)); err != nil {
		return "", err
	}
	_, err = c.onDisk(clean)

	return clean, err
}

// onDisk returns the file at a clean name in the target, nil if there is none. It refuses the archive itself,
// because the next run would use the entry as the archive.
func (c *checker) onDisk(clean string) (fs.FileInfo, error) {
	if c.target == nil {
		return nil, nil
	}
	info, err := c.target.Lstat(clean)
	switch {
	case paths.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	case c.archive != nil && os.SameFile(info, c.archive):
		return nil, fmt.Errorf("%w: it would replace the archive itself", ErrUnsafeEntry)
	}

	return info, nil
}

// inside refuses a directory that is, or is below, a link of the archive or an existing link that leads out
// of the target.
func (c *checker) inside(dir string) error {
	if c.dirs[dir] {
		return nil
	}
	if err := c.inside(path.Dir(dir)); err != nil {
		return err
	}
	if c.links[dir] {
		return fmt.Errorf("%w: it goes through the link %s", ErrUnsafeEntry, dir)
	}
	info, err := c.onDisk(dir)
	if err != nil {
		return err
	}
	if info != nil && info.Mode()&fs.ModeSymlink != 0 {
		if _, err := c.target.Stat(dir); err != nil {
			return fmt.Errorf("%w: it goes through %s, a link that leads out of the target or is absolute", ErrUnsafeEntry, dir)
		}
	}
	c.dirs[dir] = true

	return nil
}

// linkError wraps ErrLeadsOut and names the target of the link.
type linkError struct{ target string }

func (e linkError) Error() string {
	return fmt.Sprintf("%s: the link to %q leads out of the target", ErrUnsafeEntry, e.target)
}

// Unwrap returns ErrUnsafeEntry and ErrLeadsOut.
func (linkError) Unwrap() []error { return []error{ErrUnsafeEntry, ErrLeadsOut} }

// maxDepth is the maximum number of directories of an entry. Each entry costs a walk through its directories,
// and a few compressed bytes can name thousands of them.
const maxDepth = 255

// maxShown is the number of bytes of a long target in an error.
const maxShown = 80

// cleanName returns the clean form of a name that stays in the target. The error wraps ErrUnsafeEntry.
func cleanName(name string) (string, error) {
	clean := path.Clean(name)
	if len(clean) >= unix.PathMax || strings.Count(clean, "/") > maxDepth || slices.ContainsFunc(strings.Split(clean, "/"), isTooLong) {
		return "", fmt.Errorf("%w: its name is longer than a path can be, or has more than %d directories", ErrUnsafeEntry, maxDepth)
	}
	if strings.ContainsRune(name, 0) || hasDotDot(name) || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%w: its name leads out of the target", ErrUnsafeEntry)
	}

	return clean, nil
}

// isTooLong reports whether an element of a path is too long for any file system.
func isTooLong(element string) bool { return len(element) > unix.NAME_MAX }

func hasDotDot(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// checkLinkTarget accepts a link that first leads up, at most to the target directory, and then only down.
// The links on the way down are checked as well, so no chain of links leads out. A .. after a name is
// refused, because the name may be a link. The error wraps ErrUnsafeEntry, and ErrLeadsOut for a valid
// target.
func checkLinkTarget(name, target string) error {
	down := target
	for strings.HasPrefix(down, "../") {
		down = strings.TrimLeft(down[len("../"):], "/")
	}
	switch {
	case target == "":
		return fmt.Errorf("%w: the link has no target", ErrUnsafeEntry)
	case len(target) >= unix.PathMax:
		return fmt.Errorf("%w: the link to %q… has a target of %d bytes, which is longer than a path can be", ErrUnsafeEntry, target[:maxShown], len(target))
	case strings.ContainsRune(target, 0):
		return fmt.Errorf("%w: the target of the link, %q, contains a NUL byte", ErrUnsafeEntry, target)
	case path.IsAbs(target):
	case down != ".." && hasDotDot(down):
	case filepath.IsLocal(path.Join(path.Dir(name), target)):
		return nil
	}

	return linkError{target}
}
