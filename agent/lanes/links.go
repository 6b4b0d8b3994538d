package lanes

import (
	"os"
	"path/filepath"
	"slices"
)

// links is where directories are after following links.
type links map[string]string

// follow returns paths, and beside them where they are after following links: of the
// directories above, and of a path that is a link itself.
func (l links) follow(paths []string) []string {
	out := paths
	for _, path := range paths {
		real := filepath.Join(l.dir(filepath.Dir(path)), filepath.Base(path))
		for _, other := range []string{real, target(real)} {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}

	return out
}

// target returns where a link leads, and what is no link as it is.
func target(path string) string {
	if _, err := os.Readlink(path); err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}

	return path
}

// dir returns a directory after following links; of one that is missing that of what is
// there above it.
func (l links) dir(path string) string {
	if real, known := l[path]; known {
		return real
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil:
	case path == "/" || path == ".":
		real = path
	default:
		real = filepath.Join(l.dir(filepath.Dir(path)), filepath.Base(path))
	}
	l[path] = real

	return real
}
