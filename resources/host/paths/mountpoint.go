package paths

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrMounted is the error for a mount point, which can be neither removed nor replaced.
var ErrMounted = errors.New("is a mount point")

// mountedError wraps ErrMounted and names the mount point and the remedy.
type mountedError struct{ mount Mount }

func (e mountedError) Error() string {
	source := "its source"
	if e.mount.Root != "/" {
		source = fmt.Sprintf("its source, %s of device %s", e.mount.Root, e.mount.Device)
	}

	return fmt.Sprintf("%s %s and cannot be removed or replaced: unmount it (umount %s), or manage %s", e.mount.Path, ErrMounted, e.mount.Path, source)
}

// Unwrap returns ErrMounted and EBUSY, the error of the system.
func (e mountedError) Unwrap() []error { return []error{ErrMounted, unix.EBUSY} }

// RefuseMount returns ErrMounted if a name in an open directory or anything below it is a mount
// point.
func RefuseMount(dir int, name string) error {
	found, err := MountsBelow(dir, name)
	if err == nil && len(found) > 0 {
		err = found[0].Err()
	}

	return err
}

// MountPoint is a mount point in a tree.
type MountPoint struct {
	// Path is relative to the top of the tree, and empty for the top itself.
	Path  string
	mount Mount
}

// Err returns an ErrMounted that names the mount point.
func (p MountPoint) Err() error { return mountedError{p.mount} }

// MountsBelow returns the mount points at or below a name in an open directory, sorted by path. For
// the name "." it returns the mount points below the directory, without the directory itself.
func MountsBelow(dir int, name string) ([]MountPoint, error) {
	id, err := MountID(dir)
	if err != nil {
		return nil, err
	}
	at, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return nil, withoutProc(err)
	}
	text, err := os.ReadFile(mountInfo)
	if err != nil {
		return nil, withoutProc(err)
	}

	return mountsBelow(ParseMounts(text), id, at, name), nil
}

// withoutProc names the remedy if /proc is not mounted.
func withoutProc(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return fmt.Errorf("could not check for mount points: mount /proc (mount -t proc proc /proc): %w", err)
}

// mountsBelow returns the mount points at or below a name in the directory at path dir on the mount id.
func mountsBelow(table map[Mount]struct{}, id, dir, name string) (out []MountPoint) {
	byID := make(map[string]Mount, len(table))
	for m := range table {
		byID[m.ID] = m
	}
	in, known := byID[id]
	if !known {
		// In a chroot the table lacks the mount of / unless / is a mount point. It has the mounts on it.
		in = Mount{ID: id, Root: "/", Path: "/"}
		byID[id] = in
	}
	target := filepath.Join(in.within(dir), name)
	for m := range table {
		// Compare paths within the file system: a directory may have several paths, and a mount
		// point by one of them blocks its removal by all of them.
		parent, has := byID[m.Parent]
		if !has || parent.Device != in.Device {
			continue
		}
		at := parent.within(m.Path)
		if !IsWithin(at, target) || name == "." && at == target {
			continue
		}
		out = append(out, MountPoint{strings.TrimPrefix(strings.TrimPrefix(at, target), "/"), m})
	}
	slices.SortFunc(out, func(a, b MountPoint) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.mount.Path, b.mount.Path))
	})

	return out
}

// within converts a path below the mount point to a path within the file system.
func (m Mount) within(path string) string {
	return filepath.Join(m.Root, strings.TrimPrefix(path, m.Path))
}

// MountID returns the ID of the mount through which a file was opened.
func MountID(fd int) (string, error) {
	var st unix.Statx_t
	err := Retry(func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st) })
	if err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		return strconv.FormatUint(st.Mnt_id, 10), nil
	}
	// statx of kernels before 5.8 does not return it.
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if id, is := strings.CutPrefix(line, "mnt_id:"); is {
			return strings.TrimSpace(id), nil
		}
	}

	return "", errors.New("could not read which mount a directory is on")
}
