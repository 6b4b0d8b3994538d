package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// waitingFile is locked in shared mode by each process that waits for the lock of the node.
const waitingFile = "run.waiting"

// yieldTries limits how long a group lets waiting processes take the lock first. A stopped
// process that waits must not block the group longer.
const yieldTries = 20

// lockGroup are the runs of this process that share the lock of the node.
type lockGroup struct {
	// mu guards the group. A run holds it while it joins or leaves; the first run holds it while it
	// waits for the lock.
	mu     chan struct{}
	runs   []string
	holder LockHolder
	// maxSeq is the highest Seq of the runs that joined.
	maxSeq int
	file   *os.File
	// waitedFor is the process that the first run waited for. left is closed when the last run leaves.
	waitedFor *LockHolder
	left      chan struct{}
}

// LockTogether takes the lock of the node for concurrent runs of this process, which share it.
// Once another process waits for the lock, only runs with a lower Seq than the newest member may
// join, because members may wait for them. LockTogether ignores Wait and Depth of o.
func (l *Locks) LockTogether(ctx context.Context, o LockOptions) (unlock func() error, err error) {
	if l.dir == "" {
		return nil, ErrNone
	}
	o.Wait, o.Depth = true, 0
	g := &l.group
	for {
		blocked := len(g.mu) > 0
		select {
		case g.mu <- struct{}{}:
		case <-ctx.Done():
			return nil, gaveUp(ctx)
		}
		joined, err := l.join(ctx, o, blocked)
		left := g.left
		<-g.mu
		if err != nil {
			return nil, err
		}
		if joined {
			return sync.OnceValue(func() error { return g.leave(o.Holder.RunID) }), nil
		}
		select {
		case <-left:
		case <-time.After(lockPoll): // the waiting process may have given up
		case <-ctx.Done():
			return nil, gaveUp(ctx)
		}
	}
}

func gaveUp(ctx context.Context) error {
	return fmt.Errorf("gave up waiting for another run: %w", context.Cause(ctx))
}

// join adds a run to the group. The first run takes the lock. join returns false if the run has to
// wait, because another process waits for the lock. blocked is set if the run waited for mu.
func (l *Locks) join(ctx context.Context, o LockOptions, blocked bool) (joined bool, err error) {
	g := &l.group
	if len(g.runs) == 0 {
		return true, l.takeTogether(ctx, o)
	}
	if o.Seq >= g.maxSeq {
		if awaited, err := l.isAwaited(); awaited || err != nil {
			return false, err
		}
	}
	if blocked && g.waitedFor != nil && o.OnWait != nil {
		o.OnWait(*g.waitedFor)
	}
	g.runs = append(g.runs, o.Holder.RunID)
	if err := g.write(); err != nil {
		g.runs = g.runs[:len(g.runs)-1]
		return false, err
	}
	g.maxSeq = max(g.maxSeq, o.Seq)

	return true, nil
}

func (l *Locks) takeTogether(ctx context.Context, o LockOptions) (err error) {
	g := &l.group
	g.waitedFor = nil
	onWait := o.OnWait
	o.OnWait = func(by LockHolder) {
		g.waitedFor = &by
		if onWait != nil {
			onWait(by)
		}
	}
	if err := l.yield(ctx, o.OnWait); err != nil {
		return err
	}
	if g.file, o.Holder, err = l.acquire(ctx, o); err != nil {
		return err
	}
	g.holder, g.runs, g.maxSeq, g.left = o.Holder, []string{o.Holder.RunID}, o.Seq, make(chan struct{})

	return nil
}

// yield gives waiting processes time to take the lock first.
func (l *Locks) yield(ctx context.Context, onWait func(LockHolder)) error {
	for try := range yieldTries {
		awaited, err := l.isAwaited()
		if !awaited || err != nil {
			return err
		}
		if try == 0 {
			onWait(LockHolder{})
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return gaveUp(ctx)
		}
	}

	return nil
}

func (g *lockGroup) write() error {
	g.holder.RunID, g.holder.Others = g.runs[0], strings.Join(g.runs[1:], ",")

	return writeHolder(g.file, g.holder)
}

func (g *lockGroup) leave(run string) error {
	g.mu <- struct{}{}
	defer func() { <-g.mu }()
	g.runs = slices.DeleteFunc(slices.Clone(g.runs), func(other string) bool { return other == run })
	if len(g.runs) > 0 {
		return g.write()
	}
	close(g.left)

	return errors.Join(eraseHolder(g.file), unlockFile(g.file))
}

// announce records that this process waits for the lock of the node. withdraw removes the record.
func (l *Locks) announce() (withdraw func() error, err error) {
	f, err := openLock(filepath.Join(l.dir, waitingFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("cannot open "+waitingFile+": %w", err)
	}
	// isAwaited in another process may briefly hold the lock.
	if err := paths.Retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_SH) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return func() error { return unlockFile(f) }, nil
}

// isAwaited reports whether another process waits for the lock of the node.
func (l *Locks) isAwaited() (bool, error) {
	f, err := openLock(filepath.Join(l.dir, waitingFile), os.O_RDONLY)
	if paths.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := flock(f, unix.LOCK_EX); err {
	case nil:
		return false, flock(f, unix.LOCK_UN) // closing may leave it locked, see unlockFile
	case unix.EWOULDBLOCK:
		return true, nil
	default:
		return false, err
	}
}

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
		if err = flock(f, unix.LOCK_EX); err != unix.EWOULDBLOCK || !isDead(readHolder(f).PID) {
			return err
		}
		time.Sleep(lockPoll)
	}

	return err
}
