package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// agentLock is the file by which an agent claims its state directory.
const agentLock = "agent.lock"

// Claim is that this process is the one agent of a state directory.
type Claim struct{ file *os.File }

// Release ends it.
func (c *Claim) Release() error { return errors.Join(eraseHolder(c.file), unlockFile(c.file)) }

// IsLost reports whether another directory is in the place of that which was claimed, or
// another file in that of its lock. One that is away may come back: it is not lost.
func (c *Claim) IsLost() bool {
	path := c.file.Name()
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return false
	}
	held, err := c.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)

	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, now)
}

// Claim makes this process the one agent of the state directory until it is released or its
// end; the file of a dead one never blocks. A directory that another agent has is a
// LockedError. It waits only for what a dead one was just starting, for a second at most.
// An unsafe directory is an error of state.Make, without one it is state.ErrNone.
func (l *Locks) Claim(command string) (*Claim, error) {
	if l.dir == "" {
		return nil, ErrNone
	}
	if err := Make(l.dir); err != nil {
		return nil, err
	}
	f, err := openLock(filepath.Join(l.dir, agentLock), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("cannot claim the state directory: %w", err)
	}
	switch err := claim(f); {
	case err == unix.EWOULDBLOCK:
		return nil, errors.Join(LockedError{Holder: readHolder(f)}, f.Close())
	case err != nil:
		return nil, errors.Join(err, f.Close())
	}
	if err := writeHolder(f, LockHolder{Command: command, Since: time.Now().UTC()}); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return &Claim{f}, nil
}

// claimTries is how often a lock is tried that a dead process holds.
const claimTries = 20

// claim locks the file. A process that is being started has a copy of the descriptors of
// whoever starts it, for a moment, also after that was killed.
func claim(f *os.File) (err error) {
	for range claimTries {
		if err = flock(f, unix.LOCK_EX); err != unix.EWOULDBLOCK || !hasEnded(readHolder(f).PID) {
			return err
		}
		time.Sleep(lockPoll)
	}

	return err
}

// hasEnded reports whether an earlier process had this id.
func hasEnded(pid int) bool { return pid > 0 && unix.Kill(pid, 0) == unix.ESRCH }
