package watch

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
)

// locks are the lock files that watches wait for, by path.
type locks map[string]*lockWait

// lockWait is a lock file and the watches that wait until it is unlocked.
type lockWait struct {
	// file is the watch of the lock file.
	file *pathWatch
	// users are the watches with this lock file, waiting the watches that wait now.
	users, waiting map[*pathWatch]struct{}
	// since is the time when the first of waiting began to wait.
	since time.Time
	// next is the time of the next check of the lock. Some file systems send no event when a file is closed.
	next time.Time
}

// heldAgain is the interval of checks of a held lock without an event. maxHeld limits the wait, because a
// program may hang.
const (
	heldAgain = time.Second
	maxHeld   = 10 * time.Minute
)

// acquire registers a watch with its lock file. It calls watch to watch a new lock file.
func (s locks) acquire(x *pathWatch, watch func(path string) (*pathWatch, error)) error {
	l := s[x.point.After]
	if l == nil {
		file, err := watch(x.point.After)
		if err != nil {
			return err
		}
		l = &lockWait{file: file, users: map[*pathWatch]struct{}{}, waiting: map[*pathWatch]struct{}{}}
		s[x.point.After] = l
	}
	l.users[x] = struct{}{}

	return nil
}

// release ends the wait of a watch for its lock. After the last one it returns the watch of the lock file.
func (s locks) release(x *pathWatch) *pathWatch {
	l := s[x.point.After]
	if l == nil {
		return nil
	}
	delete(l.users, x)
	delete(l.waiting, x)
	if len(l.users) > 0 {
		return nil
	}
	delete(s, x.point.After)

	return l.file
}

// settle lets the watches in woken wait for their locks. It returns the wake functions of watches whose lock
// is free or was held for maxHeld. A program that closes its lock file causes an event after it releases the
// lock.
func (s locks) settle(woken []*pathWatch, now time.Time) (unblocked []func(), again time.Time) {
	for _, x := range woken {
		if l := s[x.point.After]; l != nil {
			if len(l.waiting) == 0 {
				l.since = now
			}
			l.waiting[x] = struct{}{}
			l.next = now
		}
	}
	for path, l := range s {
		switch {
		case len(l.waiting) == 0:
		case !l.file.woken && now.Before(l.next):
			again = model.EarlierNonZero(again, l.next)
		case now.Sub(l.since) < maxHeld && isHeld(path):
			l.next = now.Add(heldAgain)
			again = model.EarlierNonZero(again, l.next)
		default:
			for x := range l.waiting {
				unblocked = append(unblocked, x.wake)
			}
			clear(l.waiting)
		}
	}

	return unblocked, again
}

// isHeld reports whether another process holds a write lock (fcntl) on a file. A read lock does not count,
// because any user who can read the file can hold one. If the check fails, the lock is free.
func isHeld(path string) bool {
	seen, err := paths.OpenAt(unix.AT_FDCWD, path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(seen) }()
	var st unix.Stat_t
	if unix.Fstat(seen, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	fd, err := paths.OpenAt(unix.AT_FDCWD, procPath(seen), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	lock := unix.Flock_t{Type: unix.F_RDLCK}

	return unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

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
		if in && x.isAt(path, at.route.end()) || x.route.leadsOver(path) || x.tree != nil && x.route.end() != "" && paths.IsWithin(path, x.route.end()) {
			m.markWoken(x)
			m.markStale(x)
			concerned = true
		}
	}

	return concerned
}

func (r *route) leadsOver(path string) bool {
	for _, place := range r.places {
		if paths.IsWithin(place, path) {
			return true
		}
	}

	return false
}

func (r *route) end() string {
	if len(r.places) == 0 {
		return ""
	}

	return r.places[len(r.places)-1]
}

// isAt reports whether a path is the path of a point in a directory, or in its tree.
func (x *pathWatch) isAt(path, dir string) bool {
	_, name := split(x.point.Name)
	name = filepath.Join(dir, name)

	return path == name || x.tree != nil && paths.IsWithin(path, name)
}
