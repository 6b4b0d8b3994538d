package lanes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks and maxNames bound the links that are followed for one name, and the names in
// their texts, as where runs walk (resources/host/paths): whoever owns a directory on the way
// decides how many there are, and everything waits for it.
const (
	maxLinks = 40
	maxNames = 1000
)

// links is where directories are after following links.
type links map[string]string

// follow returns paths, and beside them where they are after following links: of the
// directories above, and of a path that is a link itself.
func (l links) follow(paths []string) []string {
	out := paths
	for _, path := range paths {
		dir, name := l.dir(filepath.Dir(path)), filepath.Base(path)
		for _, other := range []string{filepath.Join(dir, name), resolve(dir, name)} {
			if !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}

	return out
}

// dir returns a directory after following links; what is missing is no link.
func (l links) dir(path string) string {
	if path == "/" || path == "." {
		return path
	}
	real, known := l[path]
	if !known {
		real = resolve(l.dir(filepath.Dir(path)), filepath.Base(path))
		l[path] = real
	}

	return real
}

// resolve returns where a name in a directory, which has no links above it, leads; as it is
// where that is further than any run goes.
func resolve(dir, name string) string {
	var w walk
	if real := w.from(dir, name); w.links <= maxLinks && w.names <= maxNames {
		return real
	}

	return filepath.Join(dir, name)
}

// walk counts the links that were followed, and the names in their texts.
type walk struct{ links, names int }

// from returns where a relative path leads from a directory. It ends early beyond the bounds.
func (w *walk) from(dir, path string) string {
	for name := range strings.SplitSeq(path, "/") {
		if w.links > maxLinks || w.names > maxNames {
			break
		}
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, name)
		text, err := os.Readlink(next)
		if err != nil {
			dir = next
			continue
		}
		w.links++
		w.names += 1 + strings.Count(text, "/")
		if filepath.IsAbs(text) {
			dir = "/"
		}
		dir = w.from(dir, text)
	}

	return dir
}
