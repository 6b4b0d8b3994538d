package watch

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// folders are the directories that points are in, by path.
type folders struct {
	inotify *inotify
	byPath  map[string]*folder
}

// folder is a directory as points name it, which all points in it share.
type folder struct {
	path string
	// route leads to the directory, and end is that, nil while it does not exist.
	route route
	end   *dir
	// watches are those of points in it.
	watches map[*pathWatch]struct{}
	// dirty marks one whose route has to be resolved again, late one that waits for that.
	// err is why it failed last.
	dirty, late bool
	err         error
}

// acquire gives a watch the folder at a path.
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

// release takes its folder from a watch. It goes with the last.
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

// resolve walks to a folder again. After an error its route is as before.
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

// watchPath watches the name of a point in its folder, and where it is a link also the
// way that this leads.
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

// split returns the directory that a path is in, and its name there: empty for the
// root directory, the events of which have none.
func split(path string) (dir, name string) {
	if dir = filepath.Dir(path); dir == path {
		return dir, ""
	}

	return dir, filepath.Base(path)
}

// isLink reports whether a path is a link. The name is watched by then, or is by one
// who is dirty: what changes it later is an event.
func isLink(path string) bool {
	var st unix.Stat_t
	err := paths.Retry(func() error { return unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW) })

	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}
