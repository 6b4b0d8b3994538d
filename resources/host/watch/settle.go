package watch

import (
	"cmp"
	"time"

	"golang.org/x/sys/unix"
)

// retryAfter is when it is tried again to watch what could not be watched: the limits
// are of all processes together.
const retryAfter = time.Minute

// settle goes the ways again that changed. It returns whom to wake, and when to be
// called again at the latest, zero for never.
func (f *files) settle(now time.Time) (wakes []func(), again time.Time) {
	if len(f.failed) > 0 && !now.Before(f.retry) {
		f.retryFailed()
		f.retry = now.Add(retryAfter)
	}
	for _, at := range f.dirty {
		f.settleFolder(at)
	}
	for _, x := range f.stale {
		if _, armed := f.watches[x]; armed {
			x.lost = f.follow(x)
			f.judge(x)
		}
	}
	again = f.settleTrees(now)
	again = earlier(again, f.settleGates(now))
	for _, x := range f.woken {
		x.woken = false
		if x.wake != nil && (x.gate == nil || x.failed != nil) {
			wakes = append(wakes, x.wake)
		}
	}
	wakes = append(wakes, f.through...)
	f.dirty, f.stale, f.woken, f.through = nil, nil, nil, nil
	if len(f.failed) > 0 {
		again = earlier(again, f.retry)
	}

	return wakes, again
}

// settleFolder goes the way to a folder again, and has all that is in it looked at.
func (f *files) settleFolder(at *folder) {
	failed := at.err != nil
	if f.folders[at.path] != at || f.resolve(at) != nil && failed {
		at.dirty = false
		return
	}
	for x := range at.watches {
		f.wake(x)
		f.stain(x)
	}
}

// retryFailed has another try at what is not watched.
func (f *files) retryFailed() {
	for x := range f.failed {
		f.stain(x)
		if x.folder.err != nil {
			f.soil(x.folder)
		}
	}
}

// judge records whether a point is watched. Whoever wants to know is woken when
// that changed.
func (f *files) judge(x *Watch) {
	err := x.lost
	if x.tree != nil {
		err = cmp.Or(err, x.tree.err)
	}
	if (err != nil) != (x.failed != nil) {
		f.wake(x)
	}
	if x.failed = err; err == nil || x.guards != nil {
		delete(f.failed, x)
		return
	}
	if len(f.failed) == 0 {
		f.retry = time.Now().Add(retryAfter)
	}
	f.failed[x] = struct{}{}
}

// earlier returns the first of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

// gate is a lock file, and the watches that wait until nobody holds it.
type gate struct {
	path    string
	users   int
	lock    *Watch
	waiting map[*Watch]struct{}
	// next is when to look again whether it is held: not every file system tells when
	// a file is closed.
	next time.Time
}

// gateAgain is how often a lock that is held is looked at without an event.
const gateAgain = time.Second

// enter returns the gate of a watch.
func (f *files) enter(x *Watch) (*gate, error) {
	g := f.gates[x.point.After]
	if g == nil {
		g = &gate{path: x.point.After, waiting: map[*Watch]struct{}{}}
		g.lock = f.newWatch(Point{Kind: Path, Name: g.path}, nil)
		g.lock.guards = g
		if err := f.follow(g.lock); err != nil {
			f.remove(g.lock)
			return nil, err
		}
		f.gates[g.path] = g
	}
	g.users++

	return g, nil
}

// exit takes a watch from its gate, which goes with the last.
func (f *files) exit(x *Watch) {
	g := x.gate
	if g == nil {
		return
	}
	x.gate = nil
	delete(g.waiting, x)
	if g.users--; g.users == 0 {
		delete(f.gates, g.path)
		f.remove(g.lock)
	}
}

// settleGates wakes those whose locks are free. A program that closes its lock file
// writes an event after it gave the lock up.
func (f *files) settleGates(now time.Time) (again time.Time) {
	for _, x := range f.woken {
		if x.gate != nil {
			x.gate.waiting[x] = struct{}{}
			x.gate.next = now
		}
	}
	for _, g := range f.gates {
		switch {
		case len(g.waiting) == 0:
		case !g.lock.woken && now.Before(g.next):
			again = earlier(again, g.next)
		case isHeld(g.path):
			g.next = now.Add(gateAgain)
			again = earlier(again, g.next)
		default:
			for x := range g.waiting {
				f.through = append(f.through, x.wake)
			}
			clear(g.waiting)
		}
	}

	return again
}

// isHeld reports whether another process holds a lock of fcntl on a file. One that
// cannot be asked is not held.
func isHeld(path string) bool {
	seen, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(seen) }()
	var st unix.Stat_t
	if unix.Fstat(seen, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(procPath(seen), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}

	return unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}
