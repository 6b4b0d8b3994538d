package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// Links resolves paths without regard to owners. Use the results to compare paths, not to access files,
// because other users may change the links. It follows as many links as a walk. Create it with Links{}. It
// caches results.
type Links map[string]string

// Resolve returns an absolute path after following all links in it. It does not change the part below a
// missing name, or below a name with more links than a walk follows.
func (l Links) Resolve(path string) (at, target string) {
	dir, name := l.dir(filepath.Dir(path)), filepath.Base(path)

	return filepath.Join(dir, name), follow(dir, name)
}

func (l Links) dir(path string) string {
	if path == "/" || path == "." {
		return path
	}
	real, known := l[path]
	if !known {
		real = follow(l.dir(filepath.Dir(path)), filepath.Base(path))
		l[path] = real
	}

	return real
}

// follow returns the target of a name in a directory without links.
func follow(dir, name string) string {
	var t trace
	if real := t.from(dir, name); !t.isOver() {
		return real
	}

	return filepath.Join(dir, name)
}

// trace counts the followed links and the names in their texts.
type trace struct{ links, names int }

func (t *trace) isOver() bool { return t.links > maxLinks || t.names > maxNames }

// from returns the target of a path relative to a directory, up to the limits.
func (t *trace) from(dir, path string) string {
	for name := range strings.SplitSeq(path, "/") {
		if t.isOver() {
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
		t.links++
		t.names += 1 + strings.Count(text, "/")
		if filepath.IsAbs(text) {
			dir = "/"
		}
		dir = t.from(dir, text)
	}

	return dir
}
