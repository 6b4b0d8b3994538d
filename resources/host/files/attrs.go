package files

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// SetAttrs changes owner and mode of the file or directory at path. A link is ErrLink; a fifo, socket or
// device is ErrNotRegular. It never follows or opens them. A file gets exactly the mode; a directory keeps
// its special bits. A differing file with several names is ErrLinks. A file keeps its capabilities, as in
// Write. A file taken from an untrusted user loses its access control lists.
func (d *Disk) SetAttrs(path string, a Attrs) error {
	at, err := changing(path, d.paths.Parent)
	if err != nil {
		return err
	}
	defer at.Dir.Close()
	f, err := openAt(at.Dir.Fd(), at.Name, path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()

	return setAttrs(at.Dir, f.fd, path, a)
}

// setAttrs changes the file of an O_PATH descriptor, so that no user can replace it between check and change.
// in is its directory, nil for a file that muster created.
func setAttrs(in *paths.Dir, fd int, path string, a Attrs) error {
	var st unix.Stat_t
	if err := paths.Retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if a.GID == anyGroup {
		a.GID = st.Gid
	}
	mode := uint32(a.Mode.Perm())
	switch kindOf(&st) {
	case File:
	case Directory:
		mode |= st.Mode & specialBits
	case Link:
		return fmt.Errorf("%s %w", path, ErrLink)
	default:
		return fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	var foreign error
	if in != nil {
		foreign = in.Keeps(path, &st)
	}
	owned := st.Uid == a.UID && st.Gid == a.GID
	switch {
	case owned && st.Mode&allBits == mode && (foreign == nil || st.Nlink > 1 && kindOf(&st) == File):
		return nil
	case kindOf(&st) == File && st.Nlink > 1:
		return fmt.Errorf("%s %w", path, ErrLinks)
	case foreign != nil && (!owned || mode&^st.Mode != 0):
		return foreign
	case foreign != nil:
		if err := DropLists(fd); err != nil {
			return err
		}
	}
	var kept []byte
	if !owned {
		// The kernel removes capabilities when the owner or group changes.
		if kindOf(&st) == File && (st.Uid == a.UID || paths.PartyOf(0, st.Uid) == paths.Trusted) {
			kept, _ = attribute(fd, capabilities)
		}
		err := paths.Retry(func() error { return unix.Fchownat(fd, "", int(a.UID), int(a.GID), unix.AT_EMPTY_PATH) })
		if err != nil {
			return fmt.Errorf("could not set owner: %w", &fs.PathError{Op: "chown", Path: path, Err: err})
		}
	}
	if st.Uid != a.UID && paths.PartyOf(0, st.Uid) != paths.Trusted {
		// Access control lists would let former owners keep access. From here on they cannot set new ones.
		if err := DropLists(fd); err != nil {
			return err
		}
	}
	if kept != nil {
		if err := paths.Retry(func() error { return unix.Setxattr(procPath(fd), capabilities, kept, 0) }); err != nil {
			return fmt.Errorf("could not keep the capabilities: %w", &fs.PathError{Op: "setxattr", Path: path, Err: err})
		}
	}
	// A change of owner may clear bits, so the mode is set again after it.
	if err := chmodPath(fd, mode); err != nil {
		return fmt.Errorf("could not set mode: %w", &fs.PathError{Op: "chmod", Path: path, Err: err})
	}

	return nil
}

// chmodPath changes the mode of an O_PATH descriptor. Kernels before 6.6 need
// /proc for it.
func chmodPath(fd int, mode uint32) error {
	err := paths.Retry(func() error { return unix.Fchmodat(fd, "", mode, unix.AT_EMPTY_PATH) })
	// A seccomp filter that does not know the call may return EPERM.
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		err = paths.Retry(func() error { return unix.Chmod(procPath(fd), mode) })
	}

	return err
}
