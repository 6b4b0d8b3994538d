package watch

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
)

// locks are the lock files that watches wait for, by path.
type locks map[string]*lockWait

// lockWait is a lock file, and the watches that wait until nobody holds it.
type lockWait struct {
	// file is the watch of the lock file.
	file *pathWatch
	// users are those that wait when they are woken, waiting those that do now.
	users, waiting map[*pathWatch]struct{}
	// since is when the first of waiting began to wait.
	since time.Time
	// next is when to look again whether it is held: not every file system tells when
	// a file is closed.
	next time.Time
}

// heldAgain is how often a lock that is held is looked at without an event, and maxHeld how
// long it is waited for: a program may hang.
const (
	heldAgain = time.Second
	maxHeld   = 10 * time.Minute
)

// acquire has a watch wait for its lock. The file of one that is new is watched by watch.
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

// release ends that a watch waits for its lock. It returns the watch of the lock file after
// the last that did.
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

// settle has those of woken that have a lock wait for it, and returns the wakes of those whose
// lock is free, or was held for maxHeld. A program that closes its lock file writes an
// event after it gave the lock up.
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

// isHeld reports whether another process holds a lock of fcntl on a file that only those may
// hold who may write to it: anybody who can read it can have a read lock. One that cannot be
// asked is not held.
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
