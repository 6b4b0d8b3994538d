package watch_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPath changes a path in each way, each time after everything was read.
func TestPath(t *testing.T) {
	t.Parallel()
	w := newWatcher(t)
	for _, c := range []struct {
		name string
		// path is the watched path, a/b/f by default.
		path  string
		setup func(t *testing.T, dir string)
		steps []func(t *testing.T, dir string)
	}{
		{name: "content", setup: withFile, steps: steps(func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "new") })},
		{name: "content, by who keeps it open", setup: withFile, steps: steps(func(t *testing.T, dir string) {
			f, err := os.OpenFile(dir+"/a/b/f", os.O_APPEND|os.O_WRONLY, 0)
			check(t, err)
			t.Cleanup(func() { _ = f.Close() })
			_, err = f.WriteString("more")
			check(t, err)
		})},
		{name: "mode", setup: withFile, steps: steps(func(t *testing.T, dir string) { check(t, os.Chmod(dir+"/a/b/f", 0o600)) })},
		{name: "mode of a directory", path: "a/b", setup: withFile, steps: steps(func(t *testing.T, dir string) { check(t, os.Chmod(dir+"/a/b", 0o700)) })},
		{name: "mode of a parent", setup: withFile, steps: steps(func(t *testing.T, dir string) { check(t, os.Chmod(dir+"/a", 0o700)) })},
		{name: "appears, goes, appears", setup: withDir, steps: steps(
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "") },
			func(t *testing.T, dir string) { check(t, os.Remove(dir+"/a/b/f")) },
			func(t *testing.T, dir string) { mkdir(t, dir+"/a/b/f") },
		)},
		{name: "replaced", setup: withFile, steps: steps(
			func(t *testing.T, dir string) { write(t, dir+"/x", "new"); rename(t, dir+"/x", dir+"/a/b/f") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "newer") },
			func(t *testing.T, dir string) { rename(t, dir+"/a/b/f", dir+"/y") },
			func(t *testing.T, dir string) { rename(t, dir+"/y", dir+"/a/b/f") },
		)},
		{name: "missing parents", setup: func(*testing.T, string) {}, steps: steps(
			func(t *testing.T, dir string) { mkdir(t, dir+"/a") },
			func(t *testing.T, dir string) { mkdir(t, dir+"/a/b") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "") },
			func(t *testing.T, dir string) { check(t, os.RemoveAll(dir+"/a")) },
			func(t *testing.T, dir string) { mkdir(t, dir+"/a/b"); write(t, dir+"/a/b/f", "") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "x") },
		)},
		{name: "a parent is a file", setup: func(t *testing.T, dir string) { write(t, dir+"/a", "") }, steps: steps(
			func(t *testing.T, dir string) { check(t, os.Remove(dir+"/a")) },
			func(t *testing.T, dir string) { mkdir(t, dir+"/a/b") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "") },
		)},
		{name: "a parent is renamed away and back", setup: withFile, steps: steps(
			func(t *testing.T, dir string) { rename(t, dir+"/a", dir+"/away") },
			func(t *testing.T, dir string) { rename(t, dir+"/away", dir+"/a") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "x") },
		)},
		{name: "a parent is replaced", setup: withFile, steps: steps(
			func(t *testing.T, dir string) { rename(t, dir+"/a", dir+"/away"); mkdir(t, dir+"/a/b") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "x") },
		)},
		{name: "a link on the way is switched", path: "current/f", setup: func(t *testing.T, dir string) {
			mkdir(t, dir+"/one")
			mkdir(t, dir+"/two")
			check(t, os.Symlink("one", dir+"/current"))
		}, steps: steps(
			func(t *testing.T, dir string) { write(t, dir+"/one/f", "x") },
			func(t *testing.T, dir string) {
				check(t, os.Symlink(dir+"/two", dir+"/next"))
				rename(t, dir+"/next", dir+"/current")
			},
			func(t *testing.T, dir string) { write(t, dir+"/two/f", "x") },
			func(t *testing.T, dir string) { rename(t, dir+"/two", dir+"/three") },
			func(t *testing.T, dir string) { mkdir(t, dir+"/two") },
			func(t *testing.T, dir string) { write(t, dir+"/two/f", "x") },
		)},
		{name: "a link by others", path: "l", setup: func(t *testing.T, dir string) {
			mkdir(t, dir+"/a/b")
			check(t, os.Symlink("a/b/../m", dir+"/l"))
			check(t, os.Symlink(dir+"/a/b/f", dir+"/a/m"))
		}, steps: steps(
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "x") },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/f", "y") },
			func(t *testing.T, dir string) { check(t, os.Remove(dir+"/a/m")) },
			func(t *testing.T, dir string) { check(t, os.Symlink("b/g", dir+"/a/m")) },
			func(t *testing.T, dir string) { write(t, dir+"/a/b/g", "y") },
			func(t *testing.T, dir string) { check(t, os.Remove(dir+"/l")); write(t, dir+"/l", "") },
		)},
		{name: "links in a circle", path: "l/f", setup: func(t *testing.T, dir string) {
			check(t, os.Symlink("m", dir+"/l"))
			check(t, os.Symlink("l", dir+"/m"))
		}, steps: steps(
			func(t *testing.T, dir string) { check(t, os.Remove(dir+"/m")); mkdir(t, dir+"/m") },
			func(t *testing.T, dir string) { write(t, dir+"/m/f", "") },
		)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.setup(t, dir)
			if c.path == "" {
				c.path = "a/b/f"
			}
			o := arm(t, w, path(filepath.Join(dir, c.path)))
			for i, step := range c.steps {
				pass(t, w, o)
				step(t, dir)
				o.waits(t, c.name+", step "+string(rune('0'+i)))
			}
		})
	}
	if s := w.Stats(); len(s.Fallbacks) > 0 || s.Points != 0 {
		t.Errorf("in the end: %+v", s)
	}
}

type step = func(t *testing.T, dir string)

func steps(all ...step) []step { return all }

func withDir(t *testing.T, dir string) { mkdir(t, dir+"/a/b") }

func withFile(t *testing.T, dir string) {
	withDir(t, dir)
	write(t, dir+"/a/b/f", "old")
}
