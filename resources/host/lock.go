package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPath gives the run lock in the state directory, or that within a run,
// which those take who belong to it.
func (h *Host) lockPath(depth int) string {
	name := "run.lock"
	if depth > 0 {
		name = fmt.Sprintf("run.%d.lock", depth)
	}

	return filepath.Join(h.opts.StateDir, name)
}

const (
	// lockPoll is how often a lock is tried: the system can wait for it, but not be interrupted.
	lockPoll = 50 * time.Millisecond
	// lockTries is how often it is tried without waiting: HolderOf holds it for a moment too.
	lockTries = 3
)

// ErrLocked is a run lock that another process holds.
var ErrLocked = errors.New("another run holds the lock")

// LockHolder is who holds the run lock.
type LockHolder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	RunID   string    `json:"run_id,omitempty"`
	Since   time.Time `json:"since"`
}

// String names the holder for a user; the zero value is one that has not said who it is.
func (l LockHolder) String() string {
	if l.PID == 0 {
		return "an unknown process"
	}
	run := ""
	if l.RunID != "" {
		run = ", run " + l.RunID
	}

	return fmt.Sprintf("%s (pid %d%s, since %s)", l.Command, l.PID, run, l.Since.Local().Format(time.DateTime))
}

// LockedError is ErrLocked with the holder.
type LockedError struct{ Holder LockHolder }

// Error names the holder.
func (e LockedError) Error() string { return ErrLocked.Error() + ": " + e.Holder.String() }

// Unwrap gives ErrLocked.
func (e LockedError) Unwrap() error { return ErrLocked }

// LockOptions are how a run takes its lock.
type LockOptions struct {
	// Wait waits until the lock is free or ctx ends.
	Wait bool
	// Depth is how many runs the run is within: 0 takes the lock of the node. Runs
	// of one depth wait for each other, and for what outlived the one it was within.
	Depth int
	// Holder is what others are told. PID and Since are filled in where they are zero.
	Holder LockHolder
	// OnWait, when set, is called once before waiting, with who is waited for.
	OnWait func(LockHolder)
}

// Lock takes the one run lock of the node, or the one within a run, and gives
// what releases it. Only a
// process that lives can hold it: what a dead one wrote into it never blocks.
// Held by another it is a LockedError that wraps ErrLocked, or while waiting
// for it an error that wraps context.Cause(ctx). Without a state directory it
// is ErrNoStateDir.
func (h *Host) Lock(ctx context.Context, o LockOptions) (unlock func() error, err error) {
	if h.opts.StateDir == "" {
		return nil, ErrNoStateDir
	}
	if err := os.MkdirAll(h.opts.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("could not make state directory: %w", err)
	}
	path := h.lockPath(o.Depth)
	f, err := openAt(unix.AT_FDCWD, path, path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("could not open run lock: %w", err)
	}
	if err := h.waitForLock(ctx, f, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := writeHolder(f, o.Holder); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return func() error {
		// Emptied first: once closed it may be another's.
		return errors.Join(f.Truncate(0), f.Close())
	}, nil
}

func (h *Host) waitForLock(ctx context.Context, f *os.File, o LockOptions) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for try := 1; ; try++ {
		holder, err := h.tryLock(f, o.Depth)
		if err != unix.EWOULDBLOCK {
			return err
		}
		if try == lockTries {
			if !o.Wait {
				return LockedError{Holder: holder}
			}
			if o.OnWait != nil {
				o.OnWait(holder)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", holder, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// tryLock takes the lock of a depth. Where it is held, or one further in that is
// left of a run that ended, it is unix.EWOULDBLOCK with the holder.
func (h *Host) tryLock(f *os.File, depth int) (LockHolder, error) {
	// Asked before, so that nobody takes this try for a run, and after, for what
	// was within the last run may have begun meanwhile.
	holder, held, err := h.HolderOf(depth)
	if !held && err == nil {
		holder, held, err = h.leftWithin(depth)
	}
	if held || err != nil {
		return holder, cmp.Or(err, error(unix.EWOULDBLOCK))
	}
	if err := flock(f, unix.LOCK_EX); err != nil {
		return readHolder(f), err
	}
	if holder, held, err = h.leftWithin(depth); held || err != nil {
		return holder, cmp.Or(err, flock(f, unix.LOCK_UN), error(unix.EWOULDBLOCK))
	}

	return holder, nil
}

// leftWithin gives who holds a lock further in than a depth whose lock is free:
// a run in the background that outlived the one it is within.
func (h *Host) leftWithin(depth int) (LockHolder, bool, error) {
	for depth++; ; depth++ {
		if _, err := os.Lstat(h.lockPath(depth)); err != nil {
			if isAbsent(err) {
				err = nil
			}
			return LockHolder{}, false, err
		}
		if holder, held, err := h.HolderOf(depth); held || err != nil {
			return holder, held, err
		}
	}
}

func flock(f *os.File, how int) error {
	return retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

func writeHolder(f *os.File, holder LockHolder) error {
	if holder.PID == 0 {
		holder.PID = os.Getpid()
	}
	if holder.Since.IsZero() {
		holder.Since = time.Now()
	}
	content, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(content, '\n'), 0)

	return err
}

// readHolder gives the zero value when the holder has not, or not yet, said who it is.
func readHolder(f *os.File) LockHolder {
	var holder LockHolder
	content, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || json.Unmarshal(content, &holder) != nil {
		return LockHolder{}
	}

	return holder
}

// Holding gives how many of runs are left without those that do not hold their
// locks any more: up to the innermost that does. They are given by their ids,
// outermost first, each within the one before it; an outer one may have ended
// before an inner one.
func (h *Host) Holding(runs []string) (int, error) {
	for depth := len(runs) - 1; depth >= 0; depth-- {
		holder, held, err := h.HolderOf(depth)
		if err != nil || held && holder.RunID == runs[depth] {
			return depth + 1, err
		}
	}

	return 0, nil
}

// HolderOf gives who holds the run lock of a depth; false means that it is free.
func (h *Host) HolderOf(depth int) (LockHolder, bool, error) {
	if h.opts.StateDir == "" {
		return LockHolder{}, false, ErrNoStateDir
	}
	path := h.lockPath(depth)
	f, err := openAt(unix.AT_FDCWD, path, path, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		if isAbsent(err) {
			return LockHolder{}, false, nil
		}
		return LockHolder{}, false, err
	}
	defer f.Close()
	switch err := flock(f, unix.LOCK_SH); err {
	case nil:
		return LockHolder{}, false, nil
	case unix.EWOULDBLOCK:
		return readHolder(f), true, nil
	default:
		return LockHolder{}, false, err
	}
}
