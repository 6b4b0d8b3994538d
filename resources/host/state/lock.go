package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host/paths"
	"golang.org/x/sys/unix"
)

// Locks are the run locks of a node. Make them with New.
type Locks struct {
	dir     string
	checked Checked
	group   lockGroup
}

// NewLocks returns the locks of a state directory. It touches nothing yet.
func NewLocks(dir string) *Locks {
	return &Locks{dir: dir, group: lockGroup{turn: make(chan struct{}, 1)}}
}

// lockPath returns the lock file of a depth: run.lock of the node, run.N.lock
// within a run.
func (l *Locks) path(depth int) string {
	name := "run.lock"
	if depth > 0 {
		name = fmt.Sprintf("run.%d.lock", depth)
	}

	return filepath.Join(l.dir, name)
}

const (
	// lockPoll is the retry interval: waiting in the system could not be
	// interrupted.
	lockPoll = 50 * time.Millisecond
	// lockTries is how often a lock is tried without waiting: HolderOf too holds
	// it for a moment.
	lockTries = 3
	// readTries and readPause are how often and with what pause the holder is read: until
	// it is the same twice, since it may be written meanwhile.
	readTries = 20
	readPause = time.Millisecond
)

// ErrLocked is a run lock that another process holds.
var ErrLocked = errors.New("another run holds the lock")

// LockHolder describes the process that holds the run lock.
type LockHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	RunID   string `json:"run_id,omitempty"`
	// Others are the ids of further runs of the process, which hold it together with
	// RunID, separated by commas.
	Others string    `json:"others,omitempty"`
	Since  time.Time `json:"since"`
}

// String returns the holder for a user; the zero value is an unknown process.
func (h LockHolder) String() string {
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
type LockedError struct{ Holder LockHolder }

// Error names the holder.
func (e LockedError) Error() string { return ErrLocked.Error() + ": " + e.Holder.String() }

// Unwrap returns ErrLocked.
func (e LockedError) Unwrap() error { return ErrLocked }

// LockOptions configure Lock.
type LockOptions struct {
	// Wait waits until the lock is free or ctx ends.
	Wait bool
	// Depth is the number of enclosing runs: 0 takes the lock of the node. Runs of
	// one depth wait for each other, and for what outlived the run it was within.
	Depth int
	// Holder describes this run to others, with the PID of this process and the time.
	Holder LockHolder
	// Turn is the place of a run among those that hold the lock together, for
	// LockTogether: a later one may wait for an earlier one.
	Turn int
	// Checked is that the state directory was made and found safe right before the call: it
	// is not looked at again unless the run has to wait.
	Checked bool
	// OnWait, when set, is called once before waiting.
	OnWait func(LockHolder)
}

// Lock takes the run lock of the node, or one within a run, and returns its
// release. Only a living process holds it: the file of a dead one never blocks.
// A lock held by another process is a LockedError, or while waiting an error
// that wraps context.Cause(ctx). Without a state directory it is
// state.ErrNone, and with an unsafe one an error of state.Make.
func (l *Locks) Lock(ctx context.Context, o LockOptions) (unlock func() error, err error) {
	f, _, err := l.acquire(ctx, o)
	if err != nil {
		return nil, err
	}

	return func() error {
		// Erased first: once free it may belong to another process.
		return errors.Join(eraseHolder(f), unlockFile(f))
	}, nil
}

// openLock opens a lock file. What os.OpenFile tries with a poller never works for a file.
func openLock(path string, flags int) (*os.File, error) {
	fd := -1
	err := paths.Retry(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}

	return os.NewFile(uintptr(fd), path), nil
}

// unlockFile ends that f is locked, and closes it. It is unlocked, because a process that is
// being started may have a copy of the descriptor, which closing leaves locked.
func unlockFile(f *os.File) error { return errors.Join(flock(f, unix.LOCK_UN), f.Close()) }

// acquire takes a lock and returns its file and the holder that it wrote.
func (l *Locks) acquire(ctx context.Context, o LockOptions) (*os.File, LockHolder, error) {
	if l.dir == "" {
		return nil, LockHolder{}, ErrNone
	}
	if !o.Checked {
		if err := l.checked.Make(l.dir); err != nil {
			return nil, LockHolder{}, err
		}
	}
	f, err := openLock(l.path(o.Depth), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, LockHolder{}, fmt.Errorf("could not open run lock: %w", err)
	}
	if err := l.wait(ctx, f, o); err != nil {
		return nil, LockHolder{}, errors.Join(err, f.Close())
	}
	o.Holder.Since = time.Now().UTC()
	if err := writeHolder(f, o.Holder); err != nil {
		return nil, LockHolder{}, errors.Join(err, f.Close())
	}

	return f, o.Holder, nil
}

// wait takes the lock of a file that was just opened.
func (l *Locks) wait(ctx context.Context, f *os.File, o LockOptions) error {
	holder, err := l.take(f, o.Depth)
	if err != unix.EWOULDBLOCK {
		return err
	}
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for try := 1; ; try++ {
		if try == lockTries {
			if !o.Wait {
				return LockedError{Holder: holder}
			}
			if o.Depth == 0 {
				withdraw, err := l.announce()
				if err != nil {
					return err
				}
				defer withdraw()
			}
			if o.OnWait != nil {
				o.OnWait(holder)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting for %s: %w", holder, context.Cause(ctx))
		case <-ticker.C:
		}
		if holder, err = l.try(f, o.Depth); err != unix.EWOULDBLOCK {
			return err
		}
	}
}

// try is take of a file that was opened a while ago: the one at its path may be another by now.
func (l *Locks) try(f *os.File, depth int) (LockHolder, error) {
	if holder, held, err := l.HolderOf(depth); held || err != nil {
		return holder, cmp.Or(err, error(unix.EWOULDBLOCK))
	}

	return l.take(f, depth)
}

// take takes the lock of a depth. A held lock, and one further in that a
// finished run left behind, is unix.EWOULDBLOCK with the holder.
func (l *Locks) take(f *os.File, depth int) (LockHolder, error) {
	// Before, so that nobody mistakes this try for a run; again after, because a
	// run within the last one may have begun meanwhile.
	holder, held, err := l.leftWithin(depth)
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

// leftWithin returns the holder of a lock further in than a free one: a
// background run that outlived the run it was within.
func (l *Locks) leftWithin(depth int) (LockHolder, bool, error) {
	for depth++; ; depth++ {
		if _, err := os.Lstat(l.path(depth)); err != nil {
			if paths.IsAbsent(err) {
				err = nil
			}
			return LockHolder{}, false, err
		}
		if holder, held, err := l.HolderOf(depth); held || err != nil {
			return holder, held, err
		}
	}
}

func flock(f *os.File, how int) error {
	return paths.Retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

// holderSize is how much of a lock file a holder takes, and blanks where there is none: a
// file that keeps its size keeps its blocks, which those who sync others need not wait for.
const holderSize = 512

// writeHolder writes who holds the lock.
func writeHolder(f *os.File, holder LockHolder) error {
	holder.PID = os.Getpid()
	content, err := json.Marshal(holder)
	if err != nil {
		return err
	}

	return overwrite(f, content)
}

// eraseHolder has the file name nobody.
func eraseHolder(f *os.File) error { return overwrite(f, nil) }

// overwrite makes a line, filled up with blanks, the content of the file.
func overwrite(f *os.File, line []byte) error {
	content := bytes.Repeat([]byte{' '}, max(holderSize, len(line)+1))
	content[len(content)-1] = '\n'
	copy(content, line)
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	if at, err := f.Stat(); err != nil || at.Size() == int64(len(content)) {
		return err
	}

	return f.Truncate(int64(len(content)))
}

// readHolder returns the zero value when the holder has not written it yet.
func readHolder(f *os.File) LockHolder {
	var before []byte
	for try := range readTries {
		if try > 1 {
			time.Sleep(readPause)
		}
		content, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
		var holder LockHolder
		if err == nil && bytes.Equal(content, before) && json.Unmarshal(content, &holder) == nil {
			return holder
		}
		before = content
	}

	return LockHolder{}
}

// Holding returns how many of runs are left without the innermost ones that no
// longer hold their locks. The ids are outermost first; an outer run may end
// before an inner one.
func (l *Locks) Holding(runs []string) (int, error) {
	for depth := len(runs) - 1; depth >= 0; depth-- {
		holder, held, err := l.HolderOf(depth)
		if err != nil || held && (holder.RunID == runs[depth] || slices.Contains(strings.Split(holder.Others, ","), runs[depth])) {
			return depth + 1, err
		}
	}

	return 0, nil
}

// HolderOf returns the holder of the lock of a depth, and false when it is
// unlockFile.
func (l *Locks) HolderOf(depth int) (LockHolder, bool, error) {
	if l.dir == "" {
		return LockHolder{}, false, ErrNone
	}
	f, err := openLock(l.path(depth), os.O_RDONLY)
	if err != nil {
		if paths.IsAbsent(err) {
			return LockHolder{}, false, nil
		}
		return LockHolder{}, false, err
	}
	defer f.Close()
	switch err := flock(f, unix.LOCK_SH); err {
	case nil:
		return LockHolder{}, false, flock(f, unix.LOCK_UN) // closing may leave it locked, see unlockFile
	case unix.EWOULDBLOCK:
		return readHolder(f), true, nil
	default:
		return LockHolder{}, false, err
	}
}
