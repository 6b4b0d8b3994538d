package files

import "errors"

// The sentinel errors of files, wrapped with a path. The system's error is
// wrapped too, so errors.Is also finds fs.ErrPermission and the numbers of
// package syscall.
var (
	// ErrNoParent is a path whose parent is missing or not a directory.
	ErrNoParent = errors.New("is not a directory")
	// ErrNotDirectory is another kind of file where a directory is needed.
	ErrNotDirectory = errors.New("exists and is not a directory")
	// ErrNotRegular is another kind of file where a regular file is needed.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrLink is a symbolic link where links are not followed.
	ErrLink = errors.New("is a symbolic link")
	// ErrReplaced is a file that is another one than was looked at.
	ErrReplaced = errors.New("was replaced since it was looked at")
	// ErrLinks is a file with several names, some of which may be anywhere.
	ErrLinks = errors.New("has several names (hard links): its owner and mode are not changed, remove the other names (find / -samefile)")
	// ErrNotEmpty is a directory that still has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrTooLarge is a file longer than its reader allows.
	ErrTooLarge = errors.New("file is too large")
	// ErrRefused is a path that is never changed: the root directory, or no path.
	ErrRefused = errors.New("refused")
)
