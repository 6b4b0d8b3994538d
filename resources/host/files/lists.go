package files

import (
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

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

// procPath returns the path of the file of a descriptor.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// hasList reports whether a path that is no link has an access control list.
func hasList(path string) bool {
	err := paths.Retry(func() error { _, err := unix.Lgetxattr(path, accessList, nil); return err })

	return err == nil
}
