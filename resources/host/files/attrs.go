package files

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// SetAttrs changes owner and mode of the file or directory at path. A link is ErrLink; a fifo, socket or
// device is ErrNotRegular. It never follows or opens them. A file gets exactly the mode; a directory keeps
// its special bits, unless the attributes manage them. A differing file with several names is ErrLinks. A file keeps its capabilities, as in
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
	mode := a.Bits()
	switch kindOf(&st) {
	case File:
	case Directory:
		mode |= st.Mode & specialBits &^ a.Manages
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
	if !owned {
		if err := chownPath(fd, &st, path, a); err != nil {
			return err
		}
	}
	// A change of owner may clear bits, so the mode is set again after it.
	if err := chmodPath(fd, mode); err != nil {
		return fmt.Errorf("could not set mode: %w", &fs.PathError{Op: "chmod", Path: path, Err: err})
	}

	return nil
}

// chownPath changes the owner of an O_PATH descriptor with attributes st.
func chownPath(fd int, st *unix.Stat_t, path string, a Attrs) error {
	isTrusted := st.Uid == a.UID || paths.PartyOf(0, st.Uid) == paths.Trusted
	var kept []byte
	if kindOf(st) == File && isTrusted {
		// The kernel removes capabilities when the owner or group changes.
		kept, _ = attribute(fd, capabilities)
	}
	if err := paths.Retry(func() error { return unix.Fchownat(fd, "", int(a.UID), int(a.GID), unix.AT_EMPTY_PATH) }); err != nil {
		return fmt.Errorf("could not set owner: %w", &fs.PathError{Op: "chown", Path: path, Err: err})
	}
	if !isTrusted {
		// Access control lists would let former owners keep access. From here on they cannot set new ones.
		return DropLists(fd)
	}
	if kept != nil {
		if err := paths.Retry(func() error { return unix.Setxattr(procPath(fd), capabilities, kept, 0) }); err != nil {
			return fmt.Errorf("could not keep the capabilities: %w", &fs.PathError{Op: "setxattr", Path: path, Err: err})
		}
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

// The extended attributes that a new file takes over from the file that it replaces, with the
// access control list. Others, such as security.ima, depend on the content.
const (
	capabilities = "security.capability"
	label        = "security.selinux"
	userPrefix   = "user."
)

// maxAttribute is the maximum size of an extended attribute, and of a list of their names, on Linux.
const maxAttribute = 64 << 10

// inherits reports whether a new file takes over the extended attributes of the old one. An
// untrusted user must not pass attributes on to the file of another user.
func inherits(dir *paths.Dir, name string, old int, a Attrs) bool {
	var st unix.Stat_t
	if old < 0 || paths.Retry(func() error { return unix.Fstat(old, &st) }) != nil || kindOf(&st) != File {
		return false
	}

	return dir.Keeps(filepath.Join(dir.Path(), name), &st) == nil && (st.Uid == a.UID || paths.PartyOf(0, st.Uid) == paths.Trusted)
}

// Carried describes what a change of content or owner does to the extended attributes of a file.
type Carried struct {
	// Capabilities reports whether the file has capabilities that it keeps.
	Capabilities bool
	// Lost names the attributes that the file loses.
	Lost []string
	// Err is not nil if this process cannot keep the capabilities.
	Err error
}

// Carried returns what Write does to the extended attributes of the file at path. If chown is
// true, it returns what SetAttrs does when it changes the owner.
func (d *Disk) Carried(path string, a Attrs, chown bool) (c Carried) {
	at, err := changing(path, d.paths.Parent)
	if err != nil {
		return c
	}
	defer at.Dir.Close()
	old := openOld(at.Dir, at.Name)
	if old < 0 {
		return c
	}
	defer unix.Close(old)
	list, err := readAttribute(func(b []byte) (int, error) { return unix.Listxattr(procPath(old), b) })
	if err != nil {
		return c
	}
	kept := inherits(at.Dir, at.Name, old, a)
	lose := func(name string) {
		if !slices.Contains(c.Lost, name) {
			c.Lost = append(c.Lost, name)
		}
	}
	for key := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		switch {
		case key == capabilities && kept:
			c.Capabilities = true
			if !maySetCapabilities() {
				c.Err = fmt.Errorf("%s has capabilities that this user cannot preserve: run muster as root, or remove them (setcap -r)", path)
			}
		case key == capabilities:
			lose("capabilities")
		case key == accessList && !kept:
			lose("access control list")
		case strings.HasPrefix(key, userPrefix) && !kept && !chown:
			lose("user attributes")
		}
	}
	slices.Sort(c.Lost)

	return c
}

// Effects returns the attributes that the file keeps and those that it loses. If dropCapabilities
// is true, it loses its capabilities.
func (c Carried) Effects(dropCapabilities bool) (kept, lost []string) {
	switch {
	case c.Capabilities && dropCapabilities:
		return nil, append([]string{"capabilities"}, c.Lost...)
	case c.Capabilities:
		kept = []string{"capabilities"}
	}

	return kept, c.Lost
}

func maySetCapabilities() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])

	return err == nil && data[0].Effective&(1<<unix.CAP_SETFCAP) != 0
}

// carry copies the extended attributes of the old file to the temporary file f. If inherits is
// false, it sets the default label instead.
func (d *Disk) carry(ctx context.Context, f *os.File, dir *paths.Dir, name string, old int, a Attrs, o WriteOptions) error {
	if !inherits(dir, name, old, a) {
		return d.labelDefault(ctx, f, filepath.Join(dir.Path(), name))
	}
	list, err := readAttribute(func(b []byte) (int, error) { return unix.Listxattr(procPath(old), b) })
	if err != nil && err != unix.ENOTSUP {
		return fmt.Errorf("could not read extended attributes: %w", err)
	}
	for key := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		carried := slices.Contains([]string{capabilities, label, accessList}, key) || strings.HasPrefix(key, userPrefix)
		if !carried || key == capabilities && o.DropCapabilities {
			continue
		}
		value, err := attribute(old, key)
		if errors.Is(err, unix.ENODATA) {
			continue // removed since
		}
		if err == nil {
			err = setAttribute(f, key, value)
		}
		if err != nil {
			return fmt.Errorf("could not keep the extended attribute %s: %w", key, err)
		}
	}

	return nil
}

func attribute(fd int, name string) ([]byte, error) {
	return readAttribute(func(b []byte) (int, error) { return unix.Getxattr(procPath(fd), name, b) })
}

// readAttribute returns the result of a system call. It asks for the size first, because most
// files have no attributes.
func readAttribute(call func(b []byte) (int, error)) ([]byte, error) {
	if n, err := call(nil); n == 0 || err != nil {
		return nil, err
	}
	value := make([]byte, maxAttribute)
	n, err := call(value)
	if err != nil {
		return nil, err
	}

	return value[:n], nil
}

// setAttribute sets an extended attribute of a temporary file unless it already has the value.
func setAttribute(f *os.File, name string, value []byte) error {
	if now, err := attribute(int(f.Fd()), name); err == nil && slices.Equal(now, value) {
		return nil
	}
	if name == accessList {
		value = masked(value)
	}
	if err := paths.Retry(func() error { return unix.Fsetxattr(int(f.Fd()), name, value, 0) }); err != nil {
		return &fs.PathError{Op: "fsetxattr", Path: f.Name(), Err: err}
	}

	return nil
}

// The format of an access control list: a version, and entries that each begin with two words,
// the tag and the permissions.
const (
	listVersion  = 4
	listEntry    = 8
	listGroup    = 0x04
	listMask     = 0x10
	listOther    = 0x20
	bytesPerWord = 2
)

// masked returns an access control list that grants access to the owner only. The later chmod
// sets the mask from the mode.
func masked(list []byte) []byte {
	list = slices.Clone(list)
	group := []byte(nil)
	for entry := range slices.Chunk(list[min(listVersion, len(list)):], listEntry) {
		if len(entry) < listEntry {
			break
		}
		permissions := entry[bytesPerWord : 2*bytesPerWord]
		switch binary.LittleEndian.Uint16(entry) {
		case listGroup:
			group = permissions
		case listMask:
			group = permissions
		case listOther:
			clear(permissions)
		}
	}
	clear(group)

	return list
}

// labelDefault sets the default SELinux label of a path. If that fails, it logs a warning, and
// the file keeps the label of its directory.
func (d *Disk) labelDefault(ctx context.Context, f *os.File, path string) error {
	if d.label == nil {
		return nil
	}
	text, err := d.label(ctx, path)
	if err == nil && text != "" {
		err = setAttribute(f, label, []byte(text+"\x00"))
	}
	if err != nil {
		d.log.WarnContext(ctx, "could not set the SELinux label", "path", path, "error", err)
	}

	return context.Cause(ctx)
}

// The extended attributes of the access control list of a file, and of the default list of a directory.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// DropLists removes the access control lists of an open file or directory, also of an O_PATH descriptor.
// Otherwise new files would inherit the lists that a directory's owner has set, and a later mode would
// activate them.
func DropLists(fd int) error {
	for _, name := range []string{accessList, defaultList} {
		err := dropList(fd, name)
		if err != nil && err != unix.ENODATA && err != unix.ENOTSUP {
			return &fs.PathError{Op: "remove access control list", Path: procPath(fd), Err: err}
		}
	}

	return nil
}

// dropList removes one list. Only /proc leads from an O_PATH descriptor to its lists. It does not remove a
// missing list, because that causes an event for watchers.
func dropList(fd int, name string) error {
	err := paths.Retry(func() error { _, err := unix.Fgetxattr(fd, name, nil); return err })
	if err == unix.ENODATA || err == unix.ENOTSUP {
		return err
	}
	err = paths.Retry(func() error { return unix.Fremovexattr(fd, name) })
	if err == unix.EBADF {
		err = paths.Retry(func() error { return unix.Removexattr(procPath(fd), name) })
	}

	return err
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// hasList reports whether a path that is no link has an access control list.
func hasList(path string) bool {
	err := paths.Retry(func() error { _, err := unix.Lgetxattr(path, accessList, nil); return err })

	return err == nil
}
