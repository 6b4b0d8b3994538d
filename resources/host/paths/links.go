package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// Links is where directories lead by their names, without regard to who owns them: to
// compare paths, not to use them, since others may exchange the links. It follows links no
// further than a walk does. Make it with Links{}; it keeps what it found.
type Links map[string]string

// Resolve returns where an absolute path is after following the links above it, and where
// it leads if it is a link itself. What is missing is no link; a name that leads further
// than any walk goes stays as it is.
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

// follow returns where a name in a directory, which has no links above it, leads.
func follow(dir, name string) string {
	var t trace
	if real := t.from(dir, name); !t.isOver() {
		return real
	}

	return filepath.Join(dir, name)
}

// trace counts the links that were followed, and the names in their texts.
type trace struct{ links, names int }

func (t *trace) isOver() bool { return t.links > maxLinks || t.names > maxNames }

// from returns where a relative path leads from a directory, or as far as the bounds.
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
