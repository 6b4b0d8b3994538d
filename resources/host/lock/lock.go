// Package lock holds the run lock of a node, and those of the runs within a run.
package lock

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

	"github.com/musterfleet/muster/resources/host/files"
	"golang.org/x/sys/unix"
)

// Locks are the run locks of a node. Make them with New.
type Locks struct{ dir string }

// New returns the locks of a state directory. It touches nothing yet.
func New(dir string) *Locks { return &Locks{dir: dir} }

// path gives the run lock in the state directory, or that within a run,
// which those take who belong to it.
func (l *Locks) path(depth int) string {
	name := "run.lock"
	if depth > 0 {
		name = fmt.Sprintf("run.%d.lock", depth)
	}

	return filepath.Join(l.dir, name)
}

const (
	// lockPoll is how often a lock is tried: the system can wait for it, but not be interrupted.
	lockPoll = 50 * time.Millisecond
	// lockTries is how often it is tried without waiting: HolderOf holds it for a moment too.
	lockTries = 3
)

// ErrLocked is a run lock that another process holds.
var ErrLocked = errors.New("another run holds the lock")

// Holder is who holds the run lock.
type Holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	RunID   string    `json:"run_id,omitempty"`
	Since   time.Time `json:"since"`
}

// String names the holder for a user; the zero value is one that has not said who it is.
func (h Holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	run := ""
	if h.RunID != "" {
		run = ", run " + h.RunID
	}

	return fmt.Sprintf("%s (pid %d%s, since %s)", h.Command, h.PID, run, h.Since.Local().Format(time.DateTime))
}

// LockedError is ErrLocked with the holder.
type LockedError struct{ Holder Holder }

// Error names the holder.
func (e LockedError) Error() string { return ErrLocked.Error() + ": " + e.Holder.String() }

// Unwrap gives ErrLocked.
func (e LockedError) Unwrap() error { return ErrLocked }

// Options are how a run takes its lock.
type Options struct {
	// Wait waits until the lock is free or ctx ends.
	Wait bool
	// Depth is how many runs the run is within: 0 takes the lock of the node. Runs
	// of one depth wait for each other, and for what outlived the one it was within.
	Depth int
	// Holder is what others are told. PID and Since are filled in where they are zero.
	Holder Holder
	// OnWait, when set, is called once before waiting, with who is waited for.
	OnWait func(Holder)
}

// Lock takes the one run lock of the node, or the one within a run, and gives
// what releases it. Only a
// process that lives can hold it: what a dead one wrote into it never blocks.
// Held by another it is a LockedError that wraps ErrLocked, or while waiting
// for it an error that wraps context.Cause(ctx). Without a state directory it
// is files.ErrNoStateDir.
func (l *Locks) Lock(ctx context.Context, o Options) (unlock func() error, err error) {
	if l.dir == "" {
		return nil, files.ErrNoStateDir
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("could not make state directory: %w", err)
	}
	path := l.path(o.Depth)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("could not open run lock: %w", err)
	}
	if err := l.wait(ctx, f, o); err != nil {
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

func (l *Locks) wait(ctx context.Context, f *os.File, o Options) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for try := 1; ; try++ {
		holder, err := l.try(f, o.Depth)
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

// try takes the lock of a depth. Where it is held, or one further in that is
// left of a run that ended, it is unix.EWOULDBLOCK with the holder.
func (l *Locks) try(f *os.File, depth int) (Holder, error) {
	// Asked before, so that nobody takes this try for a run, and after, for what
	// was within the last run may have begun meanwhile.
	holder, held, err := l.HolderOf(depth)
	if !held && err == nil {
		holder, held, err = l.leftWithin(depth)
	}
	if held || err != nil {
		return holder, cmp.Or(err, error(unix.EWOULDBLOCK))
	}
	if err := flock(f, unix.LOCK_EX); err != nil {
		return readHolder(f), err
	}
	if holder, held, err = l.leftWithin(depth); held || err != nil {
		return holder, cmp.Or(err, flock(f, unix.LOCK_UN), error(unix.EWOULDBLOCK))
	}

	return holder, nil
}

// leftWithin gives who holds a lock further in than a depth whose lock is free:
// a run in the background that outlived the one it is within.
func (l *Locks) leftWithin(depth int) (Holder, bool, error) {
	for depth++; ; depth++ {
		if _, err := os.Lstat(l.path(depth)); err != nil {
			if files.IsAbsent(err) {
				err = nil
			}
			return Holder{}, false, err
		}
		if holder, held, err := l.HolderOf(depth); held || err != nil {
			return holder, held, err
		}
	}
}

func flock(f *os.File, how int) error {
	return files.Retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

func writeHolder(f *os.File, holder Holder) error {
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
func readHolder(f *os.File) Holder {
	var holder Holder
	content, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || json.Unmarshal(content, &holder) != nil {
		return Holder{}
	}

	return holder
}

// Holding gives how many of runs are left without those that do not hold their
// locks any more: up to the innermost that does. They are given by their ids,
// outermost first, each within the one before it; an outer one may have ended
// before an inner one.
func (l *Locks) Holding(runs []string) (int, error) {
	for depth := len(runs) - 1; depth >= 0; depth-- {
		holder, held, err := l.HolderOf(depth)
		if err != nil || held && holder.RunID == runs[depth] {
			return depth + 1, err
		}
	}

	return 0, nil
}

// HolderOf gives who holds the run lock of a depth; false means that it is free.
func (l *Locks) HolderOf(depth int) (Holder, bool, error) {
	if l.dir == "" {
		return Holder{}, false, files.ErrNoStateDir
	}
	path := l.path(depth)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		if files.IsAbsent(err) {
			return Holder{}, false, nil
		}
		return Holder{}, false, err
	}
	defer f.Close()
	switch err := flock(f, unix.LOCK_SH); err {
	case nil:
		return Holder{}, false, nil
	case unix.EWOULDBLOCK:
		return readHolder(f), true, nil
	default:
		return Holder{}, false, err
	}
}
