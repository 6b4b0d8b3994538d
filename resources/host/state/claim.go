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

// agentLock is the file that an agent locks to claim its state directory.
const agentLock = "agent.lock"

// Claim is held by the only agent of a state directory.
type Claim struct{ file *os.File }

// Release ends the claim.
func (c *Claim) Release() error { return errors.Join(eraseHolder(c.file), unlockFile(c.file)) }

// IsLost reports whether another directory or lock file has replaced the claimed one. A missing
// directory may come back, so it does not count as lost.
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

// Claim makes this process the only agent of the state directory, until it exits or releases the
// claim. It returns a LockedError if another agent holds the claim. The lock file of a dead agent
// does not block, except for up to a second while a process that it was starting has a copy of
// the descriptor. Claim returns the error of Make for an unsafe directory, and ErrNone without one.
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

// claimTries is the number of attempts to lock a file that a dead process holds.
const claimTries = 20

// claim locks the file. It retries while the holder is dead: a process that the holder was starting
// briefly has a copy of its descriptors.
func claim(f *os.File) (err error) {
	for range claimTries {
		if err = flock(f, unix.LOCK_EX); err != unix.EWOULDBLOCK || !hasEnded(readHolder(f).PID) {
			return err
		}
		time.Sleep(lockPoll)
	}

	return err
}

// hasEnded reports whether no process has this id.
func hasEnded(pid int) bool { return pid > 0 && unix.Kill(pid, 0) == unix.ESRCH }
