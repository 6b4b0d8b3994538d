package files

import (
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// The names of the access control lists of a file, and of what is made in a directory.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

// DropLists removes the access control lists of an open file or directory, also of
// an O_PATH descriptor. What is made in a directory inherits those that its owner
// has set, and a mode that is set later brings them into effect.
func DropLists(fd int) error {
	for _, name := range []string{accessList, defaultList} {
		err := dropList(fd, name)
		if err != nil && err != unix.ENODATA && err != unix.ENOTSUP {
			return &fs.PathError{Op: "remove access control list", Path: procPath(fd), Err: err}
		}
	}

	return nil
}

// dropList removes one list. Only /proc leads from an O_PATH descriptor to its lists.
// One that is not there is left alone: to remove it is an event for those who watch.
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

// procPath returns the path of what a descriptor is open at.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// hasList reports whether a path, no link, has an access control list.
func hasList(path string) bool {
	err := paths.Retry(func() error { _, err := unix.Lgetxattr(path, accessList, nil); return err })

	return err == nil
}
