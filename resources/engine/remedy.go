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

// remedy returns the remedy for an error of the machine that is common to all types. It is empty if
// the error contains its remedy. uid is the user of the process.
func remedy(err error, uid int) string {
	missing := errors.As(err, new(resource.PrerequisiteError))
	switch {
	case errors.Is(err, host.ErrNoAccount):
		return "create it before this resource, for example with a package or an exec, or correct the name"
	case errors.Is(err, files.ErrNoParent) && missing:
		return "declare it before this resource, as a file with ensure: directory"
	case errors.Is(err, command.ErrBlankName):
		return "give each argument as a separate item"
	case errors.Is(err, command.ErrNotFound):
		return "install it first, or use its full path"
	case errors.Is(err, command.ErrNotExecutable):
		return "make it executable (chmod +x), or run it with its interpreter"
	case errors.Is(err, command.ErrNoDir):
		return "create it before this resource, or correct `cwd`"
	case errors.Is(err, fs.ErrPermission) && uid != 0:
		return fmt.Sprintf("muster runs as user %d; run it as root", uid)
	case errors.Is(err, fs.ErrPermission):
		return "the file may be immutable (lsattr), or its file system forbids the change"
	default:
		return ""
	}
}
