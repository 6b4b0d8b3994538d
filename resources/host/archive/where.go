package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// locate has the error of an entry name its path below the target: that of an os.Root is
// relative, or goes through a descriptor.
func (w *writer) locate(err error, entry string) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		at.Path = w.shown(at.Path, entry)
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		link.New = w.shown(link.New, entry)
	}

	return err
}

func (w *writer) shown(path, entry string) string {
	rest, below := strings.CutPrefix(path, w.root.Name()+"/")
	switch {
	case below || !filepath.IsAbs(path):
		return filepath.Join(w.path, rest)
	case strings.HasPrefix(path, "/proc/self/fd/"):
		return filepath.Join(w.path, entry)
	default:
		return path
	}
}

// withRemedy adds to an error of a file system that takes nothing which one it is, and what
// to do. path is the target, for an error that names none.
func withRemedy(err error, path string) error {
	var at *fs.PathError
	if errors.As(err, &at) && filepath.IsAbs(at.Path) {
		path = filepath.Dir(at.Path)
	}
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the file system at %s is full, or has too many files: make room there", err, mountPoint(path))
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: mount %s writable; if it was, the kernel's log says why it no longer is", err, mountPoint(path))
	default:
		return err
	}
}

// mountPoint returns the topmost directory of the file system that a path is on, or would be.
func mountPoint(path string) string {
	device := func(path string) (uint64, bool) {
		var st unix.Stat_t
		err := paths.Retry(func() error { return unix.Stat(path, &st) })
		return uint64(st.Dev), err == nil
	}
	own, exists := device(path)
	for path != "/" && path != "." {
		above := filepath.Dir(path)
		if there, isThere := device(above); exists && there != own {
			break
		} else if !exists {
			own, exists = there, isThere
		}
		path = above
	}

	return path
}
