package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// folders are the directories of points, by path.
type folders struct {
	inotify *inotify
	byPath  map[string]*folder
}

// folder is a directory of points, shared by all points in it.
type folder struct {
	path string
	// route leads to the directory. end is the directory, nil while it does not exist.
	route route
	end   *dir
	// watches are the watches of points in the directory.
	watches map[*pathWatch]struct{}
	// dirty means that the route must be resolved again, late that this is deferred. err is the error of the
	// last attempt.
	dirty, late bool
	err         error
}

func (s *folders) acquire(x *pathWatch, path string) error {
	at := s.byPath[path]
	if at == nil {
		at = &folder{path: path, watches: map[*pathWatch]struct{}{}}
		at.route.folder = at
		if err := s.resolve(at); err != nil {
			s.drop(at)
			return err
		}
		s.byPath[path] = at
	}
	if at.err != nil {
		return at.err
	}
	at.watches[x] = struct{}{}
	x.folder = at

	return nil
}

// release removes the folder from a watch. The last release removes the folder.
func (s *folders) release(x *pathWatch) {
	at := x.folder
	if at == nil {
		return
	}
	x.folder = nil
	if delete(at.watches, x); len(at.watches) == 0 {
		s.drop(at)
	}
}

// resolve resolves the route to a folder again. After an error the route is unchanged.
func (s *folders) resolve(at *folder) error {
	to, err := s.inotify.walk(at.path)
	at.dirty, at.late, at.route.walked = false, false, time.Now()
	if at.err = err; err != nil {
		return err
	}
	if to.end != nil {
		_ = unix.Close(to.fd)
	}
	former := at.end
	at.end, at.route.places = to.end, to.places
	at.route.setHops(s.inotify, to.hops)
	if former != nil {
		s.inotify.release(former)
	}

	return nil
}

// drop removes a folder.
func (s *folders) drop(at *folder) {
	at.route.setHops(s.inotify, nil)
	if at.end != nil {
		s.inotify.release(at.end)
	}
	if s.byPath[at.path] == at {
		delete(s.byPath, at.path)
	}
}

// watchPath watches the name of a point in its folder. If the name is a link, it also watches the route that
// the link leads to.
func (s *folders) watchPath(x *pathWatch) error {
	x.stale = false
	dir, name := split(x.point.Name)
	if x.folder == nil {
		if err := s.acquire(x, dir); err != nil {
			return err
		}
	}
	if x.folder.err != nil || x.folder.end == nil {
		x.route.setHops(s.inotify, nil)
		return x.folder.err
	}
	x.route.walked, x.route.places = time.Time{}, nil
	if isLink(x.point.Name) {
		x.route.walked = time.Now()
		to, err := s.inotify.walk(x.point.Name)
		if err != nil {
			return err
		}
		if to.end != nil {
			_ = unix.Close(to.fd)
			s.inotify.release(to.end)
		}
		x.route.places = to.places
		x.route.setHops(s.inotify, to.hops)
		return nil
	}
	x.folder.end.refs++
	x.route.setHops(s.inotify, []hop{{dir: x.folder.end, name: name}})

	return nil
}

// split returns the directory and the name of a path. The root directory has no name, and all events count.
func split(path string) (dir, name string) {
	if dir = filepath.Dir(path); dir == path {
		return dir, ""
	}

	return dir, filepath.Base(path)
}

// isLink reports whether a path is a link. Its name is watched already, or a dirty watch will watch it. So a
// later change causes an event.
func isLink(path string) bool {
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW) })

	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// Limits of a tree. The owner of a directory in it may create any number of files. A tree uses at most a
// quarter of the kernel's watches for the user, which all programs of root share.
const (
	maxTreeDirs    = 10_000
	maxTreeEntries = 200_000
	maxTreeDepth   = 200
	treeShare      = 4
)

// tree contains the watched directories of a tree.
type tree struct {
	watch *pathWatch
	dirs  map[*dir]struct{}
	// scanned is the time of the last scan, err its error.
	scanned time.Time
	err     error
}

// scan watches exactly the directories of the tree. After an error it watches none.
func (t *tree) scan(n *inotify) error {
	defer func() { t.scanned = time.Now() }()
	former := t.dirs
	t.dirs = map[*dir]struct{}{}
	err := t.walk(n)
	if err != nil {
		t.prune(n)
	}
	for d := range t.dirs {
		if _, had := former[d]; !had {
			d.trees = append(d.trees, t)
		}
	}
	for d := range former {
		if _, has := t.dirs[d]; !has {
			d.trees = without(d.trees, t)
		}
		n.release(d)
	}

	return err
}

// walk adds the directories at and below the path of the point.
func (t *tree) walk(n *inotify) error {
	to, err := n.walk(t.watch.point.Name)
	if err != nil {
		return err
	}
	for _, h := range to.hops {
		n.release(h.dir)
	}
	if to.end == nil {
		return nil
	}
	defer func() {
		_ = unix.Close(to.fd)
		n.release(to.end)
	}()
	s := scanner{inotify: n, dirs: t.dirs, most: min(maxTreeDirs, n.most/treeShare)}

	return s.directory(to.fd, ".", 0)
}

func (t *tree) prune(n *inotify) {
	for d := range t.dirs {
		d.trees = without(d.trees, t)
		n.release(d)
	}
	t.dirs = nil
}

type scanner struct {
	inotify *inotify
	dirs    map[*dir]struct{}
	// most limits the directories.
	most, entries int
}

// directory watches a directory, reads it, and continues with its subdirectories. It skips a directory that
// no longer exists or cannot be read.
func (s *scanner) directory(parent int, name string, depth int) error {
	fd, err := paths.OpenAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return limit("open", err)
	}
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), procPath(fd))
	defer func() { _ = file.Close() }()
	d, err := s.inotify.watch(fd)
	if err != nil {
		return err
	}
	if _, twice := s.dirs[d]; twice {
		s.inotify.release(d)
		return nil
	}
	s.dirs[d] = struct{}{}
	if len(s.dirs) > s.most || depth > maxTreeDepth {
		return fmt.Errorf("%w: it has more than %d directories (at most a quarter of fs.inotify.max_user_watches), or more than %d within each other", ErrLimit, s.most, maxTreeDepth)
	}

	return s.entriesOf(file, fd, depth)
}

func (s *scanner) entriesOf(file *os.File, fd, depth int) error {
	const chunk = 1000
	for {
		found, err := file.ReadDir(chunk)
		if s.entries += len(found); s.entries > maxTreeEntries {
			return fmt.Errorf("%w: it has more than %d entries", ErrLimit, maxTreeEntries)
		}
		for _, entry := range found {
			if entry.Type() != fs.ModeDir {
				continue
			}
			if err := s.directory(fd, entry.Name(), depth+1); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, unix.ENOENT), err == nil && len(found) == 0:
			return nil // the end, or the directory was removed
		case err != nil:
			return err
		}
	}
}
