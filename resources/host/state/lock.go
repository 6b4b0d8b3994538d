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

// Locks are the run locks of a node. Create them with NewLocks.
type Locks struct {
	dir   string
	group lockGroup
}

// NewLocks returns the locks of a state directory. It does not access the directory.
func NewLocks(dir string) *Locks {
	return &Locks{dir: dir, group: lockGroup{mu: make(chan struct{}, 1)}}
}

// path returns the lock file of a depth: run.lock for the node, run.N.lock for nested runs.
func (l *Locks) path(depth int) string {
	name := "run.lock"
	if depth > 0 {
		name = fmt.Sprintf("run.%d.lock", depth)
	}

	return filepath.Join(l.dir, name)
}

const (
	// lockPoll is the retry interval. A blocking flock cannot be interrupted by a context.
	lockPoll = 50 * time.Millisecond
	// lockTries is the number of attempts before a lock counts as held. HolderOf briefly holds it.
	lockTries = 3
	// readTries and readPause control how the holder is read: repeatedly, until two reads are
	// equal, because another process may be writing it.
	readTries = 20
	readPause = time.Millisecond
)

// ErrLocked is returned if another process holds a lock.
var ErrLocked = errors.New("another run holds the lock")

// LockHolder describes the process that holds the run lock.
type LockHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	RunID   string `json:"run_id,omitempty"`
	// Others are the comma-separated ids of other runs of the process that share the lock.
	Others string    `json:"others,omitempty"`
	Since  time.Time `json:"since"`
}

// String describes the holder. The zero value is an unknown process.
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

// LockOptions are the options of Lock and LockTogether.
type LockOptions struct {
	// Wait waits until the lock is free or ctx ends.
	Wait bool
	// Depth is the number of enclosing runs; 0 takes the lock of the node. Runs of one depth
	// wait for each other, and for nested runs that outlived their parent.
	Depth int
	// Holder describes this run to others, with the PID of this process and the time.
	Holder LockHolder
	// Seq orders the runs that share a lock by LockTogether. A later run may wait for an
	// earlier run.
	Seq int
	// OnWait is called once before waiting. It may be nil.
	OnWait func(LockHolder)
}

// Lock takes the run lock of the node or of a nested run, and returns a function that releases
// it. The lock file of a dead process does not block. Lock returns a LockedError if another
// process holds the lock, an error that wraps context.Cause(ctx) if ctx ends, ErrNone without a
// state directory, and the error of Make for an unsafe directory.
func (l *Locks) Lock(ctx context.Context, o LockOptions) (unlock func() error, err error) {
	f, _, err := l.acquire(ctx, o)
	if err != nil {
		return nil, err
	}

	return func() error {
		// Erase before unlocking: an unlocked file may belong to another process.
		return errors.Join(eraseHolder(f), unlockFile(f))
	}, nil
}

// openLock opens a lock file. It avoids os.OpenFile, which first tries to register the file with
// the poller; that always fails for regular files.
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

// unlockFile unlocks and closes a file. Closing alone would not unlock it while a process that
// is being started has a copy of the descriptor.
func unlockFile(f *os.File) error { return errors.Join(flock(f, unix.LOCK_UN), f.Close()) }

func (l *Locks) acquire(ctx context.Context, o LockOptions) (*os.File, LockHolder, error) {
	if l.dir == "" {
		return nil, LockHolder{}, ErrNone
	}
	if err := Make(l.dir); err != nil {
		return nil, LockHolder{}, err
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

// wait takes the lock of a newly opened file. It retries until the lock is free.
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

// try takes the lock of a file that was opened earlier. Another file may have replaced it.
func (l *Locks) try(f *os.File, depth int) (LockHolder, error) {
	if holder, held, err := l.HolderOf(depth); held || err != nil {
		return holder, cmp.Or(err, error(unix.EWOULDBLOCK))
	}

	return l.take(f, depth)
}

// take takes the lock of a depth. It returns unix.EWOULDBLOCK and the holder if another process
// holds the lock, or if a nested run that outlived its parent holds a deeper lock.
func (l *Locks) take(f *os.File, depth int) (LockHolder, error) {
	// Check before locking, so that other processes do not mistake this attempt for a run. Check
	// again afterwards, because a nested run may have started.
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

// leftWithin returns the holder of a deeper lock: a background run that outlived its parent.
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

// holderSize is the size of a lock file; blanks fill the rest. A file of constant size keeps its
// blocks, so the sync of other files does not have to wait for it.
const holderSize = 512

func writeHolder(f *os.File, holder LockHolder) error {
	holder.PID = os.Getpid()
	content, err := json.Marshal(holder)
	if err != nil {
		return err
	}

	return overwrite(f, content)
}

func eraseHolder(f *os.File) error { return overwrite(f, nil) }

// overwrite replaces the content of the file with a line, padded with blanks.
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

// readHolder returns the holder, or the zero value if the file does not name it yet.
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

// Holding returns the number of runs up to the innermost one that still holds its lock. The ids
// are outermost first. An outer run may end before an inner run.
func (l *Locks) Holding(runs []string) (int, error) {
	for depth := len(runs) - 1; depth >= 0; depth-- {
		holder, held, err := l.HolderOf(depth)
		if err != nil || held && (holder.RunID == runs[depth] || slices.Contains(strings.Split(holder.Others, ","), runs[depth])) {
			return depth + 1, err
		}
	}

	return 0, nil
}

// HolderOf returns the holder of the lock of a depth, or false if the lock is free.
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
