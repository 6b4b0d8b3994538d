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
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/trust"
)

// The extended attributes that a replacement takes over from the old file, beside those
// of users. Others, such as security.ima, belong to one content.
const (
	capabilities = "security.capability"
	label        = "security.selinux"
	userPrefix   = "user."
)

// maxAttribute is the size of the largest extended attribute on Linux, and of a list of names.
const maxAttribute = 64 << 10

// inherits reports whether a replacement takes over the extended attributes of an old file.
// Users who are not trusted cannot pass theirs on to the file of another user.
func inherits(dir *paths.Dir, name string, old int, a Attrs) bool {
	var st unix.Stat_t
	if old < 0 || paths.Retry(func() error { return unix.Fstat(old, &st) }) != nil || kindOf(&st) != File {
		return false
	}

	return dir.Keeps(filepath.Join(dir.Path(), name), &st) == nil && (st.Uid == a.UID || trust.PartyOf(0, st.Uid) == trust.Trusted)
}

// KeepsCapabilities reports whether the file at path has capabilities that Write with these
// attributes keeps.
func (d *Disk) KeepsCapabilities(path string, a Attrs) bool {
	at, err := changing(path, d.paths.Parent)
	if err != nil {
		return false
	}
	defer at.Dir.Close()
	old := d.replaced.keep(at.Dir, at.Name)
	if old < 0 {
		return false
	}
	defer unix.Close(old)
	_, err = attribute(old, capabilities)

	return err == nil && inherits(at.Dir, at.Name, old, a)
}

// carry sets the extended attributes of a temporary file: those of the file that it
// replaces, or the default label of a new one.
func (d *Disk) carry(ctx context.Context, f *os.File, dir *paths.Dir, name string, old int, a Attrs, o WriteOptions) error {
	if !inherits(dir, name, old, a) {
		return d.labelDefault(ctx, f, filepath.Join(dir.Path(), name))
	}
	list, err := read(func(b []byte) (int, error) { return unix.Listxattr(procPath(old), b) })
	if err != nil && err != unix.ENOTSUP {
		return fmt.Errorf("could not read extended attributes: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if !slices.Contains([]string{capabilities, label, accessList}, name) && !strings.HasPrefix(name, userPrefix) || name == capabilities && o.DropCapabilities {
			continue
		}
		value, err := attribute(old, name)
		if errors.Is(err, unix.ENODATA) {
			continue // removed since
		}
		if err == nil {
			err = setAttribute(f, name, value)
		}
		if err != nil {
			return fmt.Errorf("could not keep the extended attribute %s: %w", name, err)
		}
	}

	return nil
}

// attribute returns the value of an extended attribute, also by an O_PATH descriptor.
func attribute(fd int, name string) ([]byte, error) {
	return read(func(b []byte) (int, error) { return unix.Getxattr(procPath(fd), name, b) })
}

// read calls a system call that returns the size for a buffer of none. Most files have no
// attributes.
func read(call func(b []byte) (int, error)) ([]byte, error) {
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

// setAttribute sets an extended attribute of a temporary file, unless it has that value.
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

// The entries of an access control list that the permissions of a file are.
const (
	listVersion  = 4 // bytes before the entries
	listEntry    = 8
	listGroup    = 0x04
	listMask     = 0x10
	listOther    = 0x20
	bytesPerWord = 2
)

// masked returns an access control list that allows nothing but to the owner, until the mode
// of the file is set.
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

// labelDefault sets the label that the policy of the machine has for a path. A label that
// cannot be found or set is a warning: the file then has the label of its directory.
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
