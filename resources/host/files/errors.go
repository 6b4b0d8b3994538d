package files

import "errors"

// Sentinel errors of files, wrapped with a path. They also wrap the system's error, so errors.Is finds
// fs.ErrPermission and the error numbers of package syscall.
var (
	// ErrNoParent means that the parent of a path is missing or not a directory.
	ErrNoParent = errors.New("is not a directory")
	// ErrNotDirectory means that a directory is needed.
	ErrNotDirectory = errors.New("exists and is not a directory")
	// ErrNotRegular means that a regular file is needed.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrLink means that the path is a symbolic link, which the operation does not follow.
	ErrLink = errors.New("is a symbolic link")
	// ErrReplaced means that the file was replaced since the look.
	ErrReplaced = errors.New("was replaced during the operation")
	// ErrLinks means that the file has several names, which may be anywhere.
	ErrLinks = errors.New("has several names (hard links): its owner and mode are not changed, remove the other names (find / -samefile)")
	// ErrNotEmpty means that a directory has entries.
	ErrNotEmpty = errors.New("directory is not empty")
	// ErrTooLarge means that a file exceeds the reader's limit.
	ErrTooLarge = errors.New("file is too large")
	// ErrRefused means that the path is never changed: the root directory or an empty path.
	ErrRefused = errors.New("refused")
)
