package watch

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
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
	seen, err := open(unix.AT_FDCWD, path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(seen) }()
	var st unix.Stat_t
	if unix.Fstat(seen, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	fd, err := open(unix.AT_FDCWD, procPath(seen), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	lock := unix.Flock_t{Type: unix.F_RDLCK}

	return unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}
