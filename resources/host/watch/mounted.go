package watch

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/musterfleet/muster/resources/host/paths"
)

// mountsEvery is the shortest interval between reads of the mount table, which is long and changes often on
// hosts of containers.
const mountsEvery = 3 * time.Second

// followMounts marks watches after each mount and unmount, because a directory has no event for them. Without
// access to the mount table it does nothing.
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

// mounted marks the watches that changed mounts concern, and wakes the reader.
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

// markMount marks a folder whose route crosses a mount, or the watches in it that the mount concerns. It
// reports whether there are any.
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

// leadsOver reports whether a route passes through the directory at a path.
func (r *route) leadsOver(path string) bool {
	for _, place := range r.places {
		if paths.IsWithin(place, path) {
			return true
		}
	}

	return false
}

// end returns the directory that a route led to, empty for an unresolved route.
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

// isAt reports whether a path is the path of a point in a directory, or in its tree.
func (x *pathWatch) isAt(path, dir string) bool {
	_, name := split(x.point.Name)
	name = filepath.Join(dir, name)

	return path == name || x.tree != nil && paths.IsWithin(path, name)
}
