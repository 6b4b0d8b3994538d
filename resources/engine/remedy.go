package engine

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// remedy returns what to do about an error of the machine that any type may have,
// empty where the error itself has it. uid is the user that muster runs as.
func remedy(err error, uid int) string {
	missing := errors.As(err, new(resource.PrerequisiteError))
	switch {
	case errors.Is(err, host.ErrNoAccount):
		return "create it before this resource, for example with a package or an exec, or correct the name"
	case errors.Is(err, files.ErrNoParent) && missing:
		return "declare it before this resource, as a file with ensure: directory"
	case errors.Is(err, command.ErrBlankName):
		return "give each argument as an item of its own"
	case errors.Is(err, command.ErrNotFound):
		return "install it first, or name it by its full path"
	case errors.Is(err, command.ErrNotExecutable):
		return "make it executable (chmod +x), or run it by its interpreter"
	case errors.Is(err, command.ErrNoDir):
		return "create it before this resource, or correct `cwd`"
	case errors.Is(err, fs.ErrPermission) && uid != 0:
		return fmt.Sprintf("muster runs as user %d: run it as root", uid)
	case errors.Is(err, fs.ErrPermission):
		return "root is denied this too: the file may be immutable (lsattr), or lie on a file system that forbids it"
	default:
		return ""
	}
}
