package files

import "errors"

// The sentinel errors of files; wrapped with %w and a path wherever they occur.
// What the system says is wrapped too, so errors.Is also finds
// fs.ErrPermission and the numbers of package syscall.
var (
	// ErrNoParent is a path whose parent is missing or no directory.
	ErrNoParent = errors.New("is not a directory")
	// ErrNotDirectory is something else where a directory is needed.
	ErrNotDirectory = errors.New("exists and is not a directory")
	// ErrNotRegular is something else where a regular file is needed.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrLink is a symbolic link where one is not followed.
	ErrLink = errors.New("is a symbolic link")
	// ErrNotEmpty is a directory that still has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrTooLarge is a file that is longer than its reader allows.
	ErrTooLarge = errors.New("file is too large")
	// ErrNoStateDir is something that needs Options.StateDir without one.
	ErrNoStateDir = errors.New("no state directory is set")
	// ErrRefused is a path that is never changed: the root directory, or no path at all.
	ErrRefused = errors.New("refused")
)
