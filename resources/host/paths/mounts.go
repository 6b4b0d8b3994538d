package paths

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Mount is a mounted file system. Mounts are comparable.
type Mount struct {
	// MountID is the number of the mount. The kernel reuses numbers after an unmount. Parent is the ID of the
	// mount that contains the mount point.
	ID, Parent string
	// Device is the major and minor number of the file system. Root is the mounted path in it.
	Device, Root string
	// Path is the mount point.
	Path string
}

// ParseMounts parses the text of /proc/self/mountinfo.
func ParseMounts(text []byte) (map[Mount]struct{}, error) {
	relative := func(info *mountinfo.Info) (skip, stop bool) { return !filepath.IsAbs(info.Mountpoint), false }
	found, err := mountinfo.GetMountsFromReader(bytes.NewReader(text), relative)
	out := make(map[Mount]struct{}, len(found))
	for _, m := range found {
		out[Mount{strconv.Itoa(m.ID), strconv.Itoa(m.Parent), fmt.Sprintf("%d:%d", m.Major, m.Minor), m.Root, m.Mountpoint}] = struct{}{}
	}

	return out, err
}

// ChangedMounts returns the sorted, distinct paths of mounts that differ between two states.
func ChangedMounts(before, after map[Mount]struct{}) []string {
	paths := map[string]struct{}{}
	for m := range before {
		if _, still := after[m]; !still {
			paths[m.Path] = struct{}{}
		}
	}
	for m := range after {
		if _, had := before[m]; !had {
			paths[m.Path] = struct{}{}
		}
	}

	return slices.Sorted(maps.Keys(paths))
}

// IsWithin reports whether a clean path is a clean directory or below it.
func IsWithin(path, dir string) bool {
	if dir == "/" || path == dir {
		return true
	}

	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

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

	table, err := ParseMounts(text)

	return mountsBelow(table, id, at, name), err
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

// MountTable is the table of mounts of this process. It is not safe for concurrent use, except Close.
// Create it with OpenMountTable.
type MountTable struct {
	file   *os.File
	closed atomic.Bool
	conn   syscall.RawConn
	known  map[Mount]struct{}
}

// The file of the table. The kernel wakes pollers of the file after each change.
const mountInfo = "/proc/self/mountinfo"

// OpenMountTable opens the table and reads it.
func OpenMountTable() (*MountTable, error) {
	file, err := os.Open(mountInfo)
	if err != nil {
		return nil, err
	}
	t := &MountTable{file: file}
	if t.conn, err = file.SyscallConn(); err == nil {
		t.known, err = t.read()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}

	return t, nil
}

// read reads the table by the open descriptor, because opening another one may fail.
func (t *MountTable) read() (map[Mount]struct{}, error) {
	text, err := io.ReadAll(io.NewSectionReader(t.file, 0, math.MaxInt64))
	if err != nil {
		return nil, err
	}

	return ParseMounts(text)
}

// Wait waits until the mounts differ from the mounts at OpenMountTable or the last Wait, and returns the
// changed paths. It returns os.ErrClosed after Close. Other errors mean that the kernel reports no changes.
func (t *MountTable) Wait() (changed []string, err error) {
	var failed error
	// The function is called before the wait and after each event, so no change is missed.
	err = t.conn.Read(func(uintptr) bool {
		var now map[Mount]struct{}
		if now, failed = t.read(); failed != nil {
			return true
		}
		changed = ChangedMounts(t.known, now)
		t.known = now

		return len(changed) > 0
	})
	switch {
	case t.closed.Load():
		err = os.ErrClosed
	case failed != nil:
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for mounts: %w", err)
	}

	return changed, nil
}

// Close ends Wait.
func (t *MountTable) Close() {
	t.closed.Store(true)
	_ = t.file.Close()
}
