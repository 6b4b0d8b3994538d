package watch

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/musterfleet/muster/resources/host/paths"
)

// mountsEvery is how often the table of mounts is read at most: where containers come and go
// that is long and changes all the time.
const mountsEvery = 3 * time.Second

// followMounts has what is watched looked at again where something is mounted or unmounted: no
// directory has an event of that. A machine that does not tell goes without.
func (f *files) followMounts() {
	table, err := paths.OpenMountTable()
	if err != nil {
		f.log.Debug("mounts cannot be watched", "error", err)
		return
	}
	f.mounts = table
	f.reader.Go(func() {
		for {
			changed, err := table.Wait()
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					f.log.Debug("mounts cannot be watched", "error", err)
				}
				return
			}
			f.mounted(changed)
			select {
			case <-f.ended:
				return
			case <-time.After(mountsEvery):
			}
		}
	})
}

// mounted marks who is concerned by changed mounts, and has the reader settle that.
func (f *files) mounted(changed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	concerned := false
	for _, at := range f.folders.byPath {
		for _, path := range changed {
			concerned = f.marks.markMount(at, path) || concerned
		}
	}
	if concerned {
		_ = f.inotify.file.SetReadDeadline(time.Now())
	}
}

// markMount marks a folder that a mount at a path leads elsewhere, or those in it that are
// there, or that it leads elsewhere, and reports whether there are any.
func (m *marks) markMount(at *folder, path string) (concerned bool) {
	if at.route.leadsOver(path) {
		m.markDirty(at)
		return true
	}
	in := len(at.route.places) > 0 && paths.IsWithin(path, at.route.end())
	for x := range at.watches {
		if in && x.isAt(path, at.route.end()) || x.route.leadsOver(path) || x.tree != nil && x.route.isAbove(path) {
			m.markWoken(x)
			m.markStale(x)
			concerned = true
		}
	}

	return concerned
}

// leadsOver reports whether a path is a directory on the way of a route.
func (r *route) leadsOver(path string) bool {
	for _, place := range r.places {
		if paths.IsWithin(place, path) {
			return true
		}
	}

	return false
}

// end returns the directory that a route led to, empty for one that was not walked.
func (r *route) end() string {
	if len(r.places) == 0 {
		return ""
	}

	return r.places[len(r.places)-1]
}

// isAbove reports whether a path is below the end of a route.
func (r *route) isAbove(path string) bool {
	return len(r.places) > 0 && paths.IsWithin(path, r.end())
}

// isAt reports whether a path is that of a point in a directory, or in its tree.
func (x *pathWatch) isAt(path, dir string) bool {
	_, name := split(x.point.Name)
	name = filepath.Join(dir, name)

	return path == name || x.tree != nil && paths.IsWithin(path, name)
}
