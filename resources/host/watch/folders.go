package watch

import (
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

// acquire sets the folder of a watch.
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
