package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// waitingFile is locked, shared, by each process that waits for the lock of the node.
const waitingFile = "run.waiting"

// yieldTries is how often runs that hold the lock together let those go first that wait
// for it. A process that was stopped while it waits does not keep them for longer.
const yieldTries = 20

// lockGroup is the runs of this process that hold the lock of the node together.
type lockGroup struct {
	// turn is held while one joins or leaves, also while the first waits for the lock.
	turn   chan struct{}
	runs   []string
	holder LockHolder
	// newest is the latest turn of those that joined.
	newest int
	file   *os.File
	// waitedFor held the lock up when it was taken. left is closed with the last run.
	waitedFor *LockHolder
	left      chan struct{}
}

// LockTogether is Lock of the node for runs of this process that go on at the same time:
// they hold it together, each by its own run id. Once another process waits for the lock
// no run joins those that hold it, so that the other is next, but for one whose turn was
// before theirs: they may wait for it. Wait and Depth of o are not
// used.
func (l *Locks) LockTogether(ctx context.Context, o LockOptions) (unlock func() error, err error) {
	if l.dir == "" {
		return nil, ErrNone
	}
	o.Wait, o.Depth = true, 0
	g := &l.group
	for {
		blocked := len(g.turn) > 0
		select {
		case g.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, gaveUp(ctx)
		}
		o.Checked = o.Checked && !blocked
		joined, err := l.join(ctx, o, blocked)
		left := g.left
		<-g.turn
		if err != nil {
			return nil, err
		}
		if joined {
			return sync.OnceValue(func() error { return g.leave(o.Holder.RunID) }), nil
		}
		select {
		case <-left:
		case <-time.After(lockPoll): // who waits may have given up
		case <-ctx.Done():
			return nil, gaveUp(ctx)
		}
		o.Checked = false
	}
}

func gaveUp(ctx context.Context) error {
	return fmt.Errorf("gave up waiting for another run: %w", context.Cause(ctx))
}

// join has a run hold the lock, and takes that for the first. It does not while others wait
// for those that hold it. blocked is that the run waited for its turn.
func (l *Locks) join(ctx context.Context, o LockOptions, blocked bool) (joined bool, err error) {
	g := &l.group
	if len(g.runs) == 0 {
		return true, l.takeTogether(ctx, o)
	}
	if o.Turn >= g.newest {
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
	g.newest = max(g.newest, o.Turn)

	return true, nil
}

// takeTogether takes the lock for the first run of a group, after those that wait for it.
func (l *Locks) takeTogether(ctx context.Context, o LockOptions) (err error) {
	g := &l.group
	g.waitedFor = nil
	onWait := o.OnWait
	o.OnWait = func(by LockHolder) {
		g.waitedFor, o.Checked = &by, false
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
	g.holder, g.runs, g.newest, g.left = o.Holder, []string{o.Holder.RunID}, o.Turn, make(chan struct{})

	return nil
}

// yield lets those take the lock that wait for it, for a while.
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

// write writes who holds the lock.
func (g *lockGroup) write() error {
	g.holder.RunID, g.holder.Others = g.runs[0], strings.Join(g.runs[1:], ",")

	return writeHolder(g.file, g.holder)
}

// leave ends that a run holds the lock, and releases it with the last.
func (g *lockGroup) leave(run string) error {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.runs = slices.DeleteFunc(slices.Clone(g.runs), func(other string) bool { return other == run })
	if len(g.runs) > 0 {
		return g.write()
	}
	close(g.left)

	return errors.Join(eraseHolder(g.file), unlockFile(g.file))
}

// announce notes that this process waits for the lock of the node, until withdraw.
func (l *Locks) announce() (withdraw func() error, err error) {
	f, err := openLock(filepath.Join(l.dir, waitingFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("could not open the file of those that wait: %w", err)
	}
	// Who looks whether somebody waits has it for a moment.
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
		return false, flock(f, unix.LOCK_UN) // closing may leave it locked, see free
	case unix.EWOULDBLOCK:
		return true, nil
	default:
		return false, err
	}
}
