package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// approvals remember for a moment which directories were reached safely, so
// that many files of one directory cost one walk. No descriptor is kept, which
// would keep a file system from being unmounted: a directory is opened again,
// and taken when it is the very one with the same owner and mode. The zero value
// remembers nothing yet.
type approvals struct {
	mu    sync.RWMutex
	since time.Time
	known map[string]approval
}

// approval is a directory that a walk has reached.
type approval struct {
	id        fileID
	uid, mode uint32
}

func approvalOf(st *unix.Stat_t) approval {
	return approval{id: idOf(st), uid: st.Uid, mode: st.Mode}
}

const (
	// approvalLife bounds how long a walk counts. Nobody gives a directory away in
	// this time and has its new owner lead its path back to the same one.
	approvalLife = 20 * time.Millisecond
	maxApprovals = 1 << 12
)

// place is a name in an open directory, which whoever gets the place closes.
type place struct {
	dir  *Dir
	name string
	st   unix.Stat_t
}

func (p *place) path() string { return filepath.Join(p.dir.path, p.name) }

// stat looks at the place, without following a link.
func (p *place) stat() error {
	err := Retry(func() error { return unix.Fstatat(p.dir.fd, p.name, &p.st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: p.path(), Err: err}
	}

	return nil
}

// dir opens the directory at path. Errors are those of OpenDir.
func (a *approvals) dir(path string) (*Dir, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return a.open(newWalk(), full)
}

// parent opens the directory that path is in. Errors are those of OpenDir.
func (a *approvals) parent(path string) (*place, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := a.open(newWalk(), filepath.Dir(full))
	if err != nil {
		return nil, err
	}
	if full == "/" {
		return &place{dir: dir, name: "."}, nil
	}

	return &place{dir: dir, name: filepath.Base(full)}, nil
}

// find looks for what a path names; follow leads on through a link there.
func (a *approvals) find(path string, follow bool) (*place, error) {
	at, err := a.parent(path)
	if err != nil {
		return nil, err
	}
	if follow {
		err = newWalk().target(at, false)
	} else {
		err = at.stat()
	}
	if err != nil {
		return nil, errors.Join(err, at.dir.Close())
	}

	return at, nil
}

// open opens a directory by an absolute, clean path.
func (a *approvals) open(w *walk, path string) (*Dir, error) {
	if path == "/" {
		return w.root()
	}
	if dir, ok := a.reopen(w, path); ok {
		return dir, nil
	}
	parent, err := a.open(w, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	dir, err := w.enter(parent, filepath.Base(path), false)
	if err == nil {
		a.add(dir)
	}

	return dir, err
}

// reopen opens a directory that an earlier walk has reached.
func (a *approvals) reopen(w *walk, path string) (*Dir, bool) {
	known, ok := a.get(path)
	if !ok {
		return nil, false
	}
	dir, err := w.open(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, false
	}
	if known != dir.approval {
		_ = dir.Close()
		return nil, false
	}

	return dir, true
}

// get returns the approval of a path that was walked a moment ago.
func (a *approvals) get(path string) (approval, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	known, ok := a.known[path]

	return known, ok && time.Since(a.since) < approvalLife
}

func (a *approvals) add(dir *Dir) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxApprovals || time.Since(a.since) >= approvalLife {
		a.known, a.since = map[string]approval{}, time.Now()
	}
	a.known[dir.path] = dir.approval
}

// look returns the entry of a path. In a directory that was reached a moment ago
// that is one call, and nothing is opened: a look changes nothing, and whatever
// reads what was found walks to it and compares.
func (a *approvals) look(path string, follow bool) (Entry, error) {
	var st unix.Stat_t
	var err error
	if _, ok := a.get(filepath.Dir(path)); ok && !follow {
		err = statAt(filepath.Clean(path), &st)
	} else {
		err = a.stat(path, &st, follow)
	}
	switch {
	case IsAbsent(err):
		return Entry{Path: path}, nil
	case err != nil:
		return Entry{Path: path}, err
	}
	entry := entryOf(path, &st)
	entry.followed, entry.from = follow, a

	return entry, nil
}

// stat walks to what a path names and looks at it.
func (a *approvals) stat(path string, st *unix.Stat_t, follow bool) error {
	at, err := a.find(path, follow)
	if err != nil {
		return err
	}
	*st = at.st

	return at.dir.Close()
}

// statAt looks at a path as the kernel resolves it.
func statAt(path string, st *unix.Stat_t) error {
	err := Retry(func() error { return unix.Fstatat(unix.AT_FDCWD, path, st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: path, Err: err}
	}

	return nil
}
