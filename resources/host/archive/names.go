package archive

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// linkError is ErrLeadsOut with the target of the link.
type linkError struct{ target string }

func (e linkError) Error() string {
	return fmt.Sprintf("%s: the link to %q leads out of the target", ErrUnsafeEntry, e.target)
}

// Unwrap returns ErrUnsafe and ErrLeadsOut.
func (linkError) Unwrap() []error { return []error{ErrUnsafeEntry, ErrLeadsOut} }

// maxDepth is how many directories an entry may be in. The way to each is walked for each
// entry, and a name of a few bytes in a compressed archive may have any number of them.
const maxDepth = 255

// maxShown is how many bytes of a long target an error shows.
const maxShown = 80

// cleanName returns the clean form of a name that stays inside. The error wraps ErrUnsafe.
func cleanName(name string) (string, error) {
	clean := path.Clean(name)
	if len(clean) >= unix.PathMax || strings.Count(clean, "/") > maxDepth || slices.ContainsFunc(strings.Split(clean, "/"), isTooLong) {
		return "", fmt.Errorf("%w: its name is longer than a path can be, or has more than %d directories", ErrUnsafeEntry, maxDepth)
	}
	if strings.ContainsRune(name, 0) || hasDotDot(name) || !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%w: its name leads out of the target", ErrUnsafeEntry)
	}

	return clean, nil
}

// isTooLong reports whether no file system takes an element of a path.
func isTooLong(element string) bool { return len(element) > unix.NAME_MAX }

func hasDotDot(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// checkLinkTarget accepts a link that first goes up, at most to the target
// directory, and then only down. The links it may pass on the way down are
// checked too, so no chain of links leads out. A .. after a name could, because
// that name may be a link. The error wraps ErrUnsafe, and ErrLeadsOut unless the target itself
// is invalid.
func checkLinkTarget(name, target string) error {
	down := target
	for strings.HasPrefix(down, "../") {
		down = strings.TrimLeft(down[len("../"):], "/")
	}
	switch {
	case target == "":
		return fmt.Errorf("%w: the link has no target", ErrUnsafeEntry)
	case len(target) >= unix.PathMax:
		return fmt.Errorf("%w: the link to %q… has a target of %d bytes, which is longer than a path can be", ErrUnsafeEntry, target[:maxShown], len(target))
	case strings.ContainsRune(target, 0):
		return fmt.Errorf("%w: the target of the link, %q, contains a NUL byte", ErrUnsafeEntry, target)
	case path.IsAbs(target):
	case down != ".." && hasDotDot(down):
	case filepath.IsLocal(path.Join(path.Dir(name), target)):
		return nil
	}

	return linkError{target}
}
