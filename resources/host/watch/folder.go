package watch

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is a directory as points name it, which all points in it share.
type folder struct {
	path string
	// way leads to the directory, and end is that, nil while it does not exist.
	way route
	end *dir
	// watches are those of points in it.
	watches map[*Watch]struct{}
	// dirty marks one whose way has to be gone again. err is why that failed last.
	dirty bool
	err   error
}

// folder returns the folder at a path, armed.
func (f *files) folder(path string) (*folder, error) {
	if at := f.folders[path]; at != nil {
		return at, at.err
	}
	at := &folder{path: path, watches: map[*Watch]struct{}{}}
	at.way.folder = at
	if err := f.resolve(at); err != nil {
		f.drop(at)
		return nil, err
	}
	f.folders[path] = at

	return at, nil
}

// resolve goes the way to a folder again. After an error its way is as before.
func (f *files) resolve(at *folder) error {
	hops, end, fd, err := f.inotify.walk(at.path)
	at.dirty = false
	if at.err = err; err != nil {
		return err
	}
	if end != nil {
		_ = unix.Close(fd)
	}
	former := at.end
	at.end = end
	at.way.take(f.inotify, hops)
	if former != nil {
		f.inotify.release(former)
	}

	return nil
}

// drop removes a folder.
func (f *files) drop(at *folder) {
	at.way.take(f.inotify, nil)
	if at.end != nil {
		f.inotify.release(at.end)
	}
	if f.folders[at.path] == at {
		delete(f.folders, at.path)
	}
}

// leave takes a watch out of its folder, which goes with the last.
func (f *files) leave(x *Watch) {
	at := x.folder
	if at == nil {
		return
	}
	x.folder = nil
	if delete(at.watches, x); len(at.watches) == 0 {
		f.drop(at)
	}
}

// follow watches the name of a point in its folder, and where it is a link also the
// way that this leads.
func (f *files) follow(x *Watch) error {
	x.stale = false
	dir, name := split(x.point.Name)
	if x.folder == nil {
		at, err := f.folder(dir)
		if err != nil {
			return err
		}
		at.watches[x] = struct{}{}
		x.folder = at
	}
	if x.folder.err != nil || x.folder.end == nil {
		x.way.take(f.inotify, nil)
		return x.folder.err
	}
	if isLink(x.point.Name) {
		hops, end, fd, err := f.inotify.walk(x.point.Name)
		if err != nil {
			return err
		}
		if end != nil {
			_ = unix.Close(fd)
			f.inotify.release(end)
		}
		x.way.take(f.inotify, hops)
		return nil
	}
	x.folder.end.refs++
	x.way.take(f.inotify, []hop{{x.folder.end, name}})

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
	_, err := retry(func() (struct{}, error) {
		return struct{}{}, unix.Fstatat(unix.AT_FDCWD, path, &st, unix.AT_SYMLINK_NOFOLLOW)
	})

	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}
