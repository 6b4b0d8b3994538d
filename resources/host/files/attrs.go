package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetAttrs changes owner and mode of the file or directory at path. A link is
// ErrLink, a fifo, socket or device ErrNotRegular; neither is followed or
// opened. A file gets exactly the mode, a directory keeps its special bits.
func (d *Disk) SetAttrs(path string, a Attrs) error {
	f, err := openAt(unix.AT_FDCWD, path, path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()

	return setAttrs(f, a)
}

// setAttrs changes the file of an O_PATH descriptor, so that nobody can replace
// it between check and change.
func setAttrs(f *os.File, a Attrs) error {
	st, err := fstat(f)
	if err != nil {
		return err
	}
	mode := uint32(a.Mode.Perm())
	switch kindOf(st) {
	case File:
	case Directory:
		mode |= st.Mode & specialBits
	case Link:
		return fmt.Errorf("%s %w", f.Name(), ErrLink)
	default:
		return fmt.Errorf("%s %w", f.Name(), ErrNotRegular)
	}
	owned := st.Uid == a.UID && st.Gid == a.GID
	if !owned {
		err := Retry(func() error { return unix.Fchownat(int(f.Fd()), "", int(a.UID), int(a.GID), unix.AT_EMPTY_PATH) })
		if err != nil {
			return fmt.Errorf("could not set owner: %w", &fs.PathError{Op: "chown", Path: f.Name(), Err: err})
		}
	}
	// A change of owner may clear bits, so the mode is set again after it.
	if owned && st.Mode&allBits == mode {
		return nil
	}
	if err := chmodPath(f, mode); err != nil {
		return fmt.Errorf("could not set mode: %w", &fs.PathError{Op: "chmod", Path: f.Name(), Err: err})
	}

	return nil
}

// chmodPath changes the mode of an O_PATH descriptor. Kernels before 6.6 need
// /proc for it.
func chmodPath(f *os.File, mode uint32) error {
	err := Retry(func() error { return unix.Fchmodat(int(f.Fd()), "", mode, unix.AT_EMPTY_PATH) })
	// A seccomp filter that does not know the call may return EPERM.
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		err = Retry(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), mode) })
	}

	return err
}

// MakeDirectory makes path and its missing parents (0755, owned by the process)
// and sets the attributes of path, which keeps its special bits. A file as a
// parent is ErrNoParent, as path ErrNotDirectory; a link as path is ErrLink.
// After an error the directories it made are removed.
func (d *Disk) MakeDirectory(path string, a Attrs) error {
	parent, name, made, err := makeParent(filepath.Clean(path))
	if err == nil {
		err = errors.Join(makeIn(parent, name, a), parent.Close())
	}
	if err != nil {
		for _, dir := range slices.Backward(made) {
			// A directory that others use by now stays.
			_ = unix.Rmdir(dir)
		}
	}

	return err
}

// anyGroup keeps the group that the system gave to a new directory; it is not a
// valid group.
const anyGroup = ^uint32(0)

// makeParent opens the parent like openParent and makes missing directories,
// 0755 whatever the umask. It returns those it made from the top, also after an
// error.
func makeParent(path string) (parent *os.File, name string, made []string, err error) {
	parent, name, err = openParent(path)
	if !errors.Is(err, ErrNoParent) {
		return parent, name, nil, err
	}
	missing := filepath.Dir(path)
	above, base, made, err := makeParent(missing)
	if err != nil {
		return nil, "", made, err
	}
	defer above.Close()
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Fstatat(int(above.Fd()), base, &st, 0) }); err == nil && kindOf(&st) != Directory {
		return nil, "", made, fmt.Errorf("%s %w", missing, ErrNoParent)
	}
	if err := makeIn(above, base, Attrs{UID: uint32(os.Geteuid()), GID: anyGroup, Mode: 0o755}); err != nil {
		return nil, "", made, err
	}
	made = append(made, missing)
	parent, name, err = openParent(path)

	return parent, name, made, err
}

// makeIn makes one directory, or takes the existing one, and sets its
// attributes. Nobody else can enter it before it has them; a new one that
// cannot have them is removed.
func makeIn(parent *os.File, name string, a Attrs) error {
	full := filepath.Join(parent.Name(), name)
	switch err := Retry(func() error { return unix.Mkdirat(int(parent.Fd()), name, 0o700) }); err {
	case nil:
		if err := setDirAttrs(parent, name, full, a); err != nil {
			_ = unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
			return err
		}
		return syncDir(parent)
	case unix.EEXIST:
		return setDirAttrs(parent, name, full, a)
	default:
		return &fs.PathError{Op: "mkdir", Path: full, Err: err}
	}
}

// setDirAttrs sets the attributes of a directory by name.
func setDirAttrs(parent *os.File, name, full string, a Attrs) error {
	f, err := openAt(int(parent.Fd()), name, full, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := fstat(f)
	switch {
	case err != nil:
		return err
	case kindOf(st) == Link:
		return fmt.Errorf("%s %w", full, ErrLink)
	case kindOf(st) != Directory:
		return fmt.Errorf("%s %w", full, ErrNotDirectory)
	}
	if a.GID == anyGroup {
		a.GID = st.Gid
	}

	return setAttrs(f, a)
}
